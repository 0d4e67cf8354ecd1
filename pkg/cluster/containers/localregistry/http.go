package localregistry

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/link/clients"
)

// nodes are the limits of the clients. Any process of the engine's machine and any pod may send
// requests. A node needs a few connections per image that it pulls, and reads 1 MB/s or more.
var nodes = clients.Limits{
	Silence: 30 * time.Second, PerByte: time.Microsecond, Idle: 2 * time.Minute, Header: 64 << 10, Connections: 256,
}

// send answers with content, or with a part of it, and closes it.
func send(w http.ResponseWriter, r *http.Request, d digest.Digest, mediaType string, from content.ReaderAt) {
	defer from.Close()
	w.Header().Set("Content-Type", mediaType)
	describe(w, d)
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(from, 0, from.Size()))
}

// describe sets the headers of a manifest or a blob.
func describe(w http.ResponseWriter, d digest.Digest) {
	w.Header().Set("Docker-Content-Digest", d.String())
	w.Header().Set("Etag", strconv.Quote(d.String()))
}

// refuse answers with an error as the specification of OCI distribution wants it.
func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": code, "message": text}}})
}

// fail answers with an error of the store or of an upstream, which a node then asks itself.
func fail(w http.ResponseWriter, unknown string, err error) {
	switch {
	case unstorable(err):
		// Docker (28.5) prints the message of a status below 500 only, and repeats the
		// upload unless the code is DENIED.
		// https://github.com/moby/moby/blob/v28.5.2/distribution/errors.go#L155-L164
		refuse(w, http.StatusRequestEntityTooLarge, "DENIED", "the local registry cannot store this: "+withRemedy(err))
	case errdefs.IsNotFound(err), refused(err):
		refuse(w, http.StatusNotFound, unknown, err.Error())
	case errdefs.IsInvalidArgument(err):
		refuse(w, http.StatusBadRequest, unknown, err.Error())
	case errors.Is(err, errUpstream):
		refuse(w, http.StatusBadGateway, "UNAVAILABLE", err.Error())
	default:
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
	}
}

// unstorable reports whether the disk is full or read-only.
func unstorable(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

// withRemedy returns an error with what a user may do about it. It does not name
// `docker system prune`, which removes the nodes of clusters that are down.
func withRemedy(err error) string {
	switch {
	case errors.Is(err, syscall.EROFS):
		return err.Error() + "; the log of the kernel of the Docker engine's machine may name the reason"
	case unstorable(err):
		return err.Error() + "; free disk space on the machine of the Docker engine, for example with `docker image " +
			"prune`, or lower --local-registry-cache"
	}
	return err.Error()
}

// noteEvery is how often the log says that content is not stored.
const noteEvery = time.Hour

// note logs why content of another registry is not stored. The nodes get it nevertheless.
func (s *Server) note(err error) {
	if err == nil {
		return
	}
	now, last := time.Now().Unix(), s.noted.Load()
	if now-last < int64(noteEvery.Seconds()) || !s.noted.CompareAndSwap(last, now) {
		return
	}
	s.log("an image of another registry is passed on and not stored: " + withRemedy(err))
}
