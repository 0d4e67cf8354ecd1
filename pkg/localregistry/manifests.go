package localregistry

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/opencontainers/go-digest"
)

// maxManifest is the limit of registries for a manifest.
const maxManifest = 4 << 20

func (s *Server) getManifest(w http.ResponseWriter, r *http.Request, t target) {
	d, err := s.resolve(r.Context(), t)
	if err != nil {
		fail(w, "MANIFEST_UNKNOWN", err)
		return
	}
	data, err := s.store.manifest(r.Context(), d)
	if err != nil {
		fail(w, "MANIFEST_UNKNOWN", err)
		return
	}
	kind, err := mediaType(data)
	if err != nil {
		fail(w, "MANIFEST_UNKNOWN", err)
		return
	}
	w.Header().Set("Content-Type", kind)
	describe(w, d, int64(len(data)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// describe sets the headers of a manifest or a blob.
func describe(w http.ResponseWriter, d digest.Digest, size int64) {
	w.Header().Set("Docker-Content-Digest", d.String())
	w.Header().Set("Etag", strconv.Quote(d.String()))
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
}

// resolve returns the digest of a manifest that the store has afterwards.
func (s *Server) resolve(ctx context.Context, t target) (digest.Digest, error) {
	d, err := t.digest()
	switch {
	case err != nil:
		return "", err
	case t.upstream == nil && d == "":
		return s.store.tagged(t)
	case t.upstream == nil || d != "" && s.store.has(ctx, d):
		return d, nil
	case d != "":
		return d, s.pullManifest(ctx, t, d)
	}
	return s.follow(ctx, t)
}

// follow returns the digest that a tag has in its upstream now. While the upstream
// does not answer, it is the digest that the tag had last.
func (s *Server) follow(ctx context.Context, t target) (digest.Digest, error) {
	last, lastErr := s.store.tagged(t)
	kept := lastErr == nil && s.store.has(ctx, last)
	if kept && t.upstream.silent() {
		return last, nil
	}
	node := ctx // ends when the node goes away
	if kept {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, freshLimit)
		defer cancel()
	}
	now, err := t.upstream.resolve(ctx, t)
	if err == nil && !s.store.has(ctx, now) {
		err = s.pullManifest(ctx, t, now)
	}
	switch {
	case err == nil:
		return now, s.store.tag(t, now)
	case kept && !refused(err) && node.Err() == nil:
		t.upstream.failed.Store(time.Now().Unix())
		return last, nil
	}
	return "", err
}

// pullManifest stores a manifest of the upstream.
func (s *Server) pullManifest(ctx context.Context, t target, d digest.Digest) error {
	data, err := t.upstream.manifest(ctx, t, d)
	if err != nil {
		return err
	}
	return s.store.write(ctx, data, d)
}

func (s *Server) putManifest(w http.ResponseWriter, r *http.Request, t target) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if err != nil {
		refuse(w, http.StatusBadRequest, "MANIFEST_INVALID", err.Error())
		return
	}
	d := digest.FromBytes(data)
	named, err := t.digest()
	if err == nil {
		_, err = mediaType(data)
	}
	switch {
	case err != nil:
		fail(w, "MANIFEST_INVALID", err)
		return
	case named != "" && named.Algorithm().FromBytes(data) != named:
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", "the manifest has another digest than "+named.String())
		return
	case named != "":
		d = named
	}
	if err = s.store.write(r.Context(), data, d); err == nil && named == "" {
		err = s.store.tag(t, d)
	}
	if err != nil {
		fail(w, "MANIFEST_INVALID", err)
		return
	}
	w.Header().Set("Docker-Content-Digest", d.String())
	w.Header().Set("Location", "/v2/"+t.repository+"/manifests/"+d.String())
	w.WriteHeader(http.StatusCreated)
}

func (s *Server) listTags(w http.ResponseWriter, t target) {
	all, err := s.store.tags(t)
	if err != nil {
		fail(w, "NAME_UNKNOWN", err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"name": t.repository, "tags": all})
}
