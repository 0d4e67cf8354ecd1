package localregistry

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

func (s *Server) getBlob(w http.ResponseWriter, r *http.Request, t target) {
	d, err := digest.Parse(t.reference)
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	case t.upstream != nil && !s.store.has(r.Context(), d):
		s.passBlob(w, r, t, d)
		return
	}
	s.sendBlob(w, r, d)
}

// sendBlob answers with a blob of the store, or with a part of it.
func (s *Server) sendBlob(w http.ResponseWriter, r *http.Request, d digest.Digest) {
	blob, err := s.store.open(r.Context(), d)
	if err != nil {
		fail(w, "BLOB_UNKNOWN", err)
		return
	}
	defer blob.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	describe(w, d, blob.Size())
	if r.Header.Get("Range") != "" {
		w.Header().Del("Content-Length") // that of the part, which ServeContent knows
	}
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(blob, 0, blob.Size()))
}

// passBlob answers with a blob of the upstream, and stores it at the same time: a
// node gives up a pull when no byte arrives for minutes. If the node goes away,
// the blob is stored nevertheless. A second node waits for the first.
func (s *Server) passBlob(w http.ResponseWriter, r *http.Request, t target, d digest.Digest) {
	size, err := t.upstream.size(r.Context(), t, d)
	if err != nil {
		fail(w, "BLOB_UNKNOWN", err)
		return
	}
	if r.Method == http.MethodHead {
		describe(w, d, size)
		return
	}
	pass := &passed{to: w, control: http.NewResponseController(w), patience: s.patience, whole: r.Header.Get("Range") == ""}
	pass.begin = func() { describe(w, d, size) }
	err = s.pullBlob(r.Context(), t, v1.Descriptor{Digest: d, Size: size}, pass)
	_ = pass.control.SetWriteDeadline(time.Time{}) // the node may use the connection again
	switch {
	case err != nil && pass.begun:
		panic(http.ErrAbortHandler) // the node sees that the blob is incomplete
	case err != nil:
		fail(w, "BLOB_UNKNOWN", err)
	case !pass.begun:
		s.sendBlob(w, r, d)
	}
}

// pullBlob stores a blob of the upstream, unless another request has done so, and
// copies it to pass. ctx ends only the wait for another request.
func (s *Server) pullBlob(ctx context.Context, t target, of v1.Descriptor, pass io.Writer) error {
	to, err := s.store.writer(ctx, "blob-"+of.Digest.String(), of)
	if errdefs.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer to.Close()
	ctx = context.WithoutCancel(ctx)
	if err := to.Truncate(0); err != nil { // another request has failed
		return err
	}
	from := t.upstream.blob(ctx, t, of)
	defer from.Close()
	if _, err := io.Copy(io.MultiWriter(to, pass), from); err != nil {
		return explained(err)
	}
	err = to.Commit(ctx, of.Size, of.Digest)
	if errdefs.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// nodeLimit is how long a node may read nothing of a blob that is being stored.
// Other nodes wait for that blob.
const nodeLimit = 30 * time.Second

// passed copies a blob to a node until the node goes away, or reads nothing for
// longer than patience.
type passed struct {
	to           io.Writer
	control      *http.ResponseController // of to
	patience     time.Duration
	whole        bool   // the node wants the blob from its beginning
	begin        func() // sends the headers
	begun, ended bool
}

func (p *passed) Write(data []byte) (int, error) {
	if !p.whole || p.ended {
		return len(data), nil
	}
	if !p.begun {
		p.begin()
		p.begun = true
	}
	_ = p.control.SetWriteDeadline(time.Now().Add(p.patience))
	_, err := p.to.Write(data)
	p.ended = err != nil
	return len(data), nil
}
