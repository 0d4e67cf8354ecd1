package localregistry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

// maxManifest is the limit of registries for a manifest.
const maxManifest = 4 << 20

func (s *Server) getManifest(w http.ResponseWriter, r *http.Request, t target) {
	d, from, err := s.manifest(r.Context(), t)
	if err != nil {
		fail(w, "MANIFEST_UNKNOWN", err)
		return
	}
	kind, err := s.kindOf(d, from)
	if err != nil {
		from.Close()
		fail(w, "MANIFEST_UNKNOWN", err)
		return
	}
	send(w, r, d, kind, from)
}

// kindOf returns the media type of a manifest, and refuses content that is too large for one.
// Only one manifest is in memory at a time, however many clients ask.
func (s *Server) kindOf(d digest.Digest, from content.ReaderAt) (string, error) {
	if from.Size() > maxManifest {
		return "", fmt.Errorf("%s is not a manifest: %w", d, errdefs.ErrNotFound)
	}
	s.parsing.Lock()
	defer s.parsing.Unlock()
	data, err := io.ReadAll(io.NewSectionReader(from, 0, from.Size()))
	if err != nil {
		return "", err
	}
	return mediaType(data)
}

// manifest returns the manifest that a target names.
func (s *Server) manifest(ctx context.Context, t target) (digest.Digest, content.ReaderAt, error) {
	d, err := t.digest()
	switch {
	case err != nil:
		return "", nil, err
	case d == "" && t.upstream != nil:
		return s.follow(ctx, t)
	case d == "":
		if d, err = s.store.tagged(t); err != nil {
			return "", nil, err
		}
	}
	from, err := s.openManifest(ctx, t, d)
	return d, from, err
}

// follow asks the upstream for the manifest of a tag, or else takes the stored one.
func (s *Server) follow(ctx context.Context, t target) (digest.Digest, content.ReaderAt, error) {
	last, lastErr := s.store.tagged(t)
	kept := lastErr == nil && s.store.has(ctx, t, last)
	lastOne := func() (digest.Digest, content.ReaderAt, error) {
		from, err := s.store.open(ctx, t, last)
		return last, from, err
	}
	if kept && t.upstream.silent() {
		return lastOne()
	}
	limited := ctx // ctx itself ends when the node goes away
	if kept {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, freshLimit) //nolint:forbidigo // then the stored digest is the answer
		defer cancel()
	}
	now, err := t.resolve(limited)
	var from content.ReaderAt
	if err == nil {
		from, err = s.openManifest(limited, t, now)
	}
	switch {
	case err == nil:
		s.note(s.store.tag(t, now))
		return now, from, nil
	case kept && !refused(err) && ctx.Err() == nil:
		t.upstream.failed.Store(time.Now().Unix())
		return lastOne()
	}
	return "", nil, err
}

// openManifest returns a manifest of the store, or that of the upstream, which it may store.
func (s *Server) openManifest(ctx context.Context, t target, d digest.Digest) (content.ReaderAt, error) {
	from, err := s.store.open(ctx, t, d)
	if err == nil || t.upstream == nil {
		return from, err
	}
	data, err := t.pullManifest(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := s.store.cache.write(ctx, data, d); err == nil {
		if from, err := s.store.open(ctx, t, d); err == nil {
			return from, nil
		}
	} else if ctx.Err() == nil { // otherwise the node has gone away
		s.note(err)
	}
	return inMemory{bytes.NewReader(data)}, nil
}

// inMemory is content that the store does not have.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

func (s *Server) putManifest(w http.ResponseWriter, r *http.Request, t target) {
	body, err := s.store.spool(http.MaxBytesReader(w, r.Body, maxManifest))
	if unstorable(err) {
		fail(w, "MANIFEST_INVALID", err)
		return
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "MANIFEST_INVALID", err.Error())
		return
	}
	defer body.Close()
	d, err := s.pushManifest(r.Context(), t, body)
	switch {
	case errors.Is(err, errOtherDigest):
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	case err != nil:
		fail(w, "MANIFEST_INVALID", err)
		return
	}
	created(w, t, "manifests", d)
}

var errOtherDigest = errors.New("the manifest has another digest")

// pushManifest stores a manifest under its digest, and under the tag of the target
// if that names one. As in kindOf, only one manifest is in memory at a time.
func (s *Server) pushManifest(ctx context.Context, t target, body io.ReaderAt) (digest.Digest, error) {
	s.parsing.Lock()
	defer s.parsing.Unlock()
	data, err := io.ReadAll(io.NewSectionReader(body, 0, maxManifest))
	if err != nil {
		return "", err
	}
	d, err := t.digest()
	if err == nil {
		_, err = mediaType(data)
	}
	switch {
	case err != nil:
		return "", err
	case d == "":
		d = digest.FromBytes(data)
		if err := s.store.push(ctx, data, d); err != nil {
			return "", err
		}
		return d, s.store.tag(t, d)
	case d.Algorithm().FromBytes(data) != d:
		return "", fmt.Errorf("%w than %s", errOtherDigest, d)
	}
	return d, s.store.push(ctx, data, d)
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
