package localregistry

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// DefaultCache is the default limit of a cache in bytes.
const DefaultCache = 10 << 30

// cache keeps the content of other registries, up to a limit. It removes what was
// used least recently. The modification time of a file is the time of its last use,
// so that the order survives a restart.
type cache struct {
	content content.Store
	root    string // of content
	limit   int64  // in bytes

	mu      sync.Mutex
	claimed int64 // bytes of the content that is being stored
}

// openCache removes what exceeds the limit, which may have been higher before.
func openCache(root string, limit int64) (*cache, error) {
	blobs, err := openContent(root)
	if err != nil {
		return nil, err
	}
	c := &cache{content: blobs, root: root, limit: limit}
	_ = c.claim(context.Background(), 0) // each claim tries again
	return c, nil
}

// open returns content, and notes its use. The file may be removed while it is read.
func (c *cache) open(ctx context.Context, d digest.Digest) (content.ReaderAt, error) {
	now := time.Now()
	path := filepath.Join(c.root, "blobs", d.Algorithm().String(), d.Encoded())
	// a file that is missing cannot be opened either, and a read-only disk keeps its order
	_ = os.Chtimes(path, now, now)
	return c.content.ReaderAt(ctx, v1.Descriptor{Digest: d})
}

// write stores content that is in memory.
func (c *cache) write(ctx context.Context, data []byte, d digest.Digest) error {
	e, err := c.begin(ctx, v1.Descriptor{Digest: d, Size: int64(len(data))})
	if errdefs.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := bytes.NewReader(data).WriteTo(e); err != nil {
		e.drop(ctx)
		return err
	}
	return e.commit(ctx)
}

// claim reserves space, for which it removes what was used least recently.
func (c *cache) claim(ctx context.Context, size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fits(size, c.claimed); err != nil {
		return err
	}
	all, used := c.list(ctx)
	for _, one := range all {
		if used <= c.limit-c.claimed-size {
			break
		}
		if err := c.content.Delete(ctx, one.Digest); err != nil {
			return err
		}
		used -= one.Size
	}
	c.claimed += size
	return nil
}

// fits returns an error if that size, which may be any number, is too large for the cache.
func (c *cache) fits(size, claimed int64) error {
	if size > c.limit-claimed {
		return fmt.Errorf("%d bytes do not fit into the %d bytes of --local-registry-cache, of which other pulls "+
			"need %d", size, c.limit, claimed)
	}
	return nil
}

// list returns the content by its last use, the oldest first, and its size.
func (c *cache) list(ctx context.Context) (all []content.Info, used int64) {
	_ = c.content.Walk(ctx, func(one content.Info) error { // there is no directory before the first content
		if one.Digest.Validate() == nil {
			all, used = append(all, one), used+one.Size
		}
		return nil
	})
	// the modification time
	slices.SortFunc(all, func(a, b content.Info) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all, used
}

// entry is content that is being stored.
type entry struct {
	content.Writer
	cache *cache
	ref   string
	of    v1.Descriptor
}

// begin waits for another request that stores the same content, and returns
// errdefs.ErrAlreadyExists if it has done so. ctx ends only this wait.
func (c *cache) begin(ctx context.Context, of v1.Descriptor) (*entry, error) {
	if err := c.fits(of.Size, 0); err != nil {
		return nil, err
	}
	ref := "mirrored-" + of.Digest.String()
	to, err := writer(ctx, c.content, ref, of)
	if unstorable(err) {
		_ = c.content.Abort(ctx, ref) // files without content
	}
	if err != nil {
		return nil, err
	}
	e := &entry{to, c, ref, of}
	if err = e.Truncate(0); err == nil { // another request may have failed
		err = c.claim(ctx, of.Size)
	}
	if err != nil {
		e.abort(ctx)
		return nil, err
	}
	return e, nil
}

// abort removes the unfinished content before Close lets the next request begin.
func (e *entry) abort(ctx context.Context) {
	_ = e.cache.content.Abort(ctx, e.ref)
	_ = e.Close()
}

// drop gives up.
func (e *entry) drop(ctx context.Context) {
	e.abort(ctx)
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	e.cache.claimed -= e.of.Size
}

// commit lets no other request claim space meanwhile, which would count the content twice.
func (e *entry) commit(ctx context.Context) error {
	if to, ok := e.Writer.(content.Syncer); ok {
		_ = to.Sync() // Commit returns its error; others need not wait for most of the work
	}
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	e.cache.claimed -= e.of.Size
	err := e.Commit(ctx, e.of.Size, e.of.Digest)
	if err == nil || errdefs.IsAlreadyExists(err) {
		return nil
	}
	_ = e.cache.content.Abort(ctx, e.ref)
	return err
}
