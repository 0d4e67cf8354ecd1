package localregistry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
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
		send(w, r, d, blobType, blob)
	case t.upstream != nil:
		s.passBlob(w, r, t, d)
	default:
		fail(w, "BLOB_UNKNOWN", err)
	}
}

// blobType is the Content-Type of every blob.
const blobType = "application/octet-stream"

// errNotStored is the error that a blob was not stored and that no node reads it.
var errNotStored = errors.New("the blob was not stored")

// passBlob answers with a blob of the upstream, and stores it at the same time: a
// node gives up a pull when no byte arrives for minutes. If the node goes away,
// the blob is stored nevertheless. A second node waits for the first.
//
//	upstream ──▶ copies ──▶ passed ──▶ node       until it goes away
//	                    └─▶ entry  ──▶ cache      unless the disk is full, or the blob is larger than the cache
func (s *Server) passBlob(w http.ResponseWriter, r *http.Request, t target, d digest.Digest) {
	size, err := t.size(r.Context(), d)
	if err != nil {
		fail(w, "BLOB_UNKNOWN", err)
		return
	}
	begin := func() {
		describe(w, d)
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	}
	if r.Method == http.MethodHead {
		begin()
		return
	}
	node := &passed{to: w, whole: r.Header.Get("Range") == "", begin: begin}
	blob, err := s.pullOrOpen(r.Context(), t, v1.Descriptor{Digest: d, Size: size}, node)
	switch {
	case err != nil && node.begun:
		panic(http.ErrAbortHandler) // the node sees that the blob is incomplete
	case err != nil:
		fail(w, "BLOB_UNKNOWN", err)
	case blob != nil:
		send(w, r, d, blobType, blob)
	}
}

// pullOrOpen passes a blob to a node, or returns the blob once it is stored. It tries
// again if the blob could not be stored, or was removed at once for others.
func (s *Server) pullOrOpen(ctx context.Context, t target, of v1.Descriptor, node *passed) (content.ReaderAt, error) {
	const tries = 3
	for try := 1; ; try++ {
		err := s.pullBlob(ctx, t, of, node)
		if node.begun {
			return nil, err
		}
		if err == nil {
			var blob content.ReaderAt
			if blob, err = s.store.open(ctx, t, of.Digest); err == nil {
				return blob, nil
			}
		}
		if try == tries || !errors.Is(err, errNotStored) && !errdefs.IsNotFound(err) {
			return nil, err
		}
		node.whole = true
	}
}

// pullBlob copies a blob of the upstream to a node and to the cache, unless another
// request has stored it. ctx ends only the wait for that request. Without the cache,
// the node gets the whole blob instead of a part, and skips what it has.
func (s *Server) pullBlob(ctx context.Context, t target, of v1.Descriptor, node *passed) error {
	stored, err := s.store.cache.begin(ctx, of)
	switch {
	case errdefs.IsAlreadyExists(err):
		return nil
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		s.note(err)
		node.whole = true
	}
	node.left = of.Size
	c := &copies{
		server: s, ctx: context.WithoutCancel(ctx), of: of, verifier: of.Digest.Verifier(), node: node, stored: stored,
	}
	defer c.drop()
	from := t.upstream.reader.Blob(c.ctx, t.repository, of.Digest, of.Size)
	defer from.Close()
	if _, err := io.Copy(c, from); err != nil {
		return explained(err)
	}
	return c.end()
}

// copies writes a blob to a node and to the cache.
type copies struct {
	server   *Server
	ctx      context.Context
	of       v1.Descriptor
	verifier digest.Verifier // the cache verifies only what it stores
	node     *passed
	stored   *entry // nil: the blob is not stored
}

// Write goes on for the node if the cache cannot store the blob.
func (c *copies) Write(data []byte) (int, error) {
	_, _ = c.verifier.Write(data)
	if c.stored != nil {
		if _, err := c.stored.Write(data); err != nil {
			c.server.note(err)
			c.drop()
		}
	}
	_, _ = c.node.Write(data)
	if c.stored == nil && !c.node.reads() {
		return 0, errNotStored
	}
	return len(data), nil
}

// end verifies the blob, lets the node have the end of it, and has the cache keep it.
func (c *copies) end() error {
	if !c.verifier.Verified() {
		return fmt.Errorf("the registry that the image comes from has sent other content than %s", c.of.Digest)
	}
	c.node.finish()
	if c.stored == nil {
		return nil
	}
	err := c.stored.commit(c.ctx)
	c.stored = nil
	c.server.note(err)
	if err != nil && !c.node.reads() {
		return errNotStored
	}
	return nil
}

// drop removes what the cache has of the blob.
func (c *copies) drop() {
	if c.stored != nil {
		c.stored.drop(c.ctx)
		c.stored = nil
	}
}

// passed copies a blob to a node until the node goes away, or is too slow. Other nodes wait for
// that blob. It holds the last byte back, so that no node gets all of a false blob.
type passed struct {
	to           io.Writer
	whole        bool   // the node gets the blob from its beginning
	begin        func() // sends the headers
	begun, ended bool
	left         int64 // bytes to come
	last         []byte
}

func (p *passed) Write(data []byte) (int, error) {
	if p.left -= int64(len(data)); p.left == 0 && len(data) > 0 {
		p.last = slices.Clone(data[len(data)-1:])
		p.send(data[:len(data)-1])
	} else {
		p.send(data)
	}
	return len(data), nil
}

// finish sends the last byte.
func (p *passed) finish() { p.send(p.last) }

func (p *passed) send(data []byte) {
	if !p.reads() {
		return
	}
	if !p.begun {
		p.begin()
		p.begun = true
	}
	_, err := p.to.Write(data)
	p.ended = err != nil
}

// reads reports whether the node gets the blob.
func (p *passed) reads() bool { return p.whole && !p.ended }
