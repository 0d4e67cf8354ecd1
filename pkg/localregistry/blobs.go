package localregistry

import (
	"io"
	"net/http"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/opencontainers/go-digest"
)

func (s *Server) getBlob(w http.ResponseWriter, r *http.Request, t target) {
	d, err := digest.Parse(t.reference)
	if err != nil {
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	}
	blob, err := s.store.open(r.Context(), t, d)
	switch {
	case err == nil:
		sendBlob(w, r, d, blob)
	case t.upstream != nil:
		s.passBlob(w, r, t, d)
	default:
		fail(w, "BLOB_UNKNOWN", err)
	}
}

// sendBlob answers with a blob of the store, or with a part of it, and closes it.
func sendBlob(w http.ResponseWriter, r *http.Request, d digest.Digest, blob content.ReaderAt) {
	defer blob.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	describe(w, d, blob.Size())
	if r.Header.Get("Range") != "" {
		w.Header().Del("Content-Length") // that of the part, which ServeContent knows
	}
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(blob, 0, blob.Size()))
}
