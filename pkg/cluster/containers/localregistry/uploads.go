package localregistry

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

var uploadForm = regexp.MustCompile(`^[A-Z2-7]{26}$`) // as rand.Text

// upload answers the requests by which a client pushes a blob:
//
//	POST  /v2/REPOSITORY/blobs/uploads/               202, Location of the upload; or ?mount=DIGEST, ?digest=DIGEST: 201
//	PATCH /v2/REPOSITORY/blobs/uploads/ID             202, any number of times
//	PUT   /v2/REPOSITORY/blobs/uploads/ID?digest=     201
func (s *Server) upload(w http.ResponseWriter, r *http.Request, t target) {
	if t.reference == "" && r.Method == http.MethodPost {
		s.beginUpload(w, r, t)
		return
	}
	if !uploadForm.MatchString(t.reference) {
		refuse(w, http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "there is no such upload")
		return
	}
	switch r.Method {
	case http.MethodPatch:
		s.appendTo(w, r, t)
	case http.MethodPut:
		s.endUpload(w, r, t)
	case http.MethodGet:
		s.reportUpload(w, r, t)
	case http.MethodDelete:
		_ = s.store.pushed.Abort(r.Context(), uploadRef(t))
		w.WriteHeader(http.StatusNoContent)
	default:
		refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "an upload does not support "+r.Method)
	}
}

func uploadRef(t target) string { return "upload-" + t.reference }

// beginUpload answers a mount of a blob that the store has, from whichever repository.
func (s *Server) beginUpload(w http.ResponseWriter, r *http.Request, t target) {
	query := r.URL.Query()
	if d, err := digest.Parse(query.Get("mount")); err == nil && s.store.has(r.Context(), t, d) {
		created(w, t, "blobs", d)
		return
	}
	s.removeAbandoned(r.Context())
	t.reference = rand.Text()
	if query.Get("digest") != "" {
		s.endUpload(w, r, t)
		return
	}
	accepted(w, t, 0)
}

// uploadLife is how long an upload that receives nothing is kept.
const uploadLife = time.Hour

// removeAbandoned removes what interrupted clients have left. It reads all uploads, so only one
// request does it at a time.
func (s *Server) removeAbandoned(ctx context.Context) {
	if !s.cleaning.TryLock() {
		return
	}
	defer s.cleaning.Unlock()
	all, _ := s.store.pushed.ListStatuses(ctx)
	for _, one := range all {
		if time.Since(one.UpdatedAt) > uploadLife {
			_ = s.store.pushed.Abort(ctx, one.Ref)
		}
	}
}

// accepted answers with the size of an upload so far.
func accepted(w http.ResponseWriter, t target, size int64) {
	w.Header().Set("Location", "/v2/"+t.repository+"/blobs/uploads/"+t.reference)
	w.Header().Set("Docker-Upload-Uuid", t.reference)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(size-1, 0)))
	w.WriteHeader(http.StatusAccepted)
}

// created answers that content of a kind, "blobs" or "manifests", is stored.
func created(w http.ResponseWriter, t target, kind string, d digest.Digest) {
	w.Header().Set("Location", "/v2/"+t.repository+"/"+kind+"/"+d.String())
	w.Header().Set("Docker-Content-Digest", d.String())
	w.WriteHeader(http.StatusCreated)
}

// receive appends the body of a request to an upload. The caller closes the writer.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, t target) (content.Writer, int64, bool) {
	to, err := writer(r.Context(), s.store.pushed, uploadRef(t), v1.Descriptor{})
	if err != nil {
		s.dropUnstorable(r.Context(), t, err)
		fail(w, "BLOB_UPLOAD_UNKNOWN", err)
		return nil, 0, false
	}
	status, err := to.Status()
	if err == nil && outOfOrder(r, status.Offset) {
		to.Close()
		refuse(w, http.StatusRequestedRangeNotSatisfiable, "RANGE_INVALID", "the upload continues at another byte")
		return nil, 0, false
	}
	var n int64
	if err == nil {
		n, err = io.Copy(to, r.Body)
	}
	if err != nil {
		s.dropUnstorable(r.Context(), t, err)
		to.Close()
		fail(w, "BLOB_UPLOAD_INVALID", err)
		return nil, 0, false
	}
	return to, status.Offset + n, true
}

// dropUnstorable removes an upload that the disk has no space for. The client begins another.
func (s *Server) dropUnstorable(ctx context.Context, t target, err error) {
	if unstorable(err) {
		_ = s.store.pushed.Abort(ctx, uploadRef(t))
	}
}

// outOfOrder reports whether a chunk begins at another byte than the next one.
func outOfOrder(r *http.Request, offset int64) bool {
	first, _, given := strings.Cut(r.Header.Get("Content-Range"), "-")
	return given && first != fmt.Sprint(offset)
}

func (s *Server) appendTo(w http.ResponseWriter, r *http.Request, t target) {
	to, size, ok := s.receive(w, r, t)
	if !ok {
		return
	}
	if err := to.Close(); err != nil {
		fail(w, "BLOB_UPLOAD_INVALID", err)
		return
	}
	accepted(w, t, size)
}

func (s *Server) endUpload(w http.ResponseWriter, r *http.Request, t target) {
	d, err := digest.Parse(r.URL.Query().Get("digest"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	}
	to, size, ok := s.receive(w, r, t)
	if !ok {
		return
	}
	defer to.Close()
	err = to.Commit(r.Context(), size, d)
	switch {
	case errdefs.IsFailedPrecondition(err):
		_ = s.store.pushed.Abort(r.Context(), uploadRef(t))
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", err.Error())
	case err != nil && !errdefs.IsAlreadyExists(err):
		s.dropUnstorable(r.Context(), t, err)
		fail(w, "BLOB_UPLOAD_INVALID", err)
	default:
		created(w, t, "blobs", d)
	}
}

func (s *Server) reportUpload(w http.ResponseWriter, r *http.Request, t target) {
	status, err := s.store.pushed.Status(r.Context(), uploadRef(t))
	if err != nil {
		fail(w, "BLOB_UPLOAD_UNKNOWN", err)
		return
	}
	w.Header().Set("Location", r.URL.Path)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(status.Offset-1, 0)))
	w.WriteHeader(http.StatusNoContent)
}
