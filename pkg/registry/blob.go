package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
)

// stallLimit is the idle timeout of a transfer, which then resumes on a new connection.
const stallLimit = time.Minute

// maxClients bounds the memory of a Reader that runs for months.
const maxClients = 100

// Reader reads blobs. It is safe for concurrent use.
type Reader struct {
	*Registry
	base http.RoundTripper

	mu      sync.Mutex
	clients map[string]*http.Client // by repository, because a token may be valid for one repository only
}

// Reader returns a Reader of this registry.
func (r *Registry) Reader() (*Reader, error) {
	t, err := r.transport()
	if err != nil {
		return nil, err
	}
	return &Reader{Registry: r, base: link.Retry{Next: link.IdleTimeout{Next: r.guarded(t), Limit: stallLimit}},
		clients: map[string]*http.Client{}}, nil
}

func (r *Reader) client(ctx context.Context, repo name.Repository) (*http.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.clients[repo.Name()]; c != nil {
		return c, nil
	}
	t, err := transport.NewWithContext(ctx, repo.Registry, authn.FromConfig(r.Auth), r.base,
		[]string{repo.Scope(transport.PullScope)})
	if err != nil {
		return nil, err
	}
	if len(r.clients) >= maxClients {
		clear(r.clients) // the others get a new token
	}
	r.clients[repo.Name()] = &http.Client{Transport: t}
	return r.clients[repo.Name()], nil
}

// Blob opens a blob at path. A broken transfer resumes at the last received byte, with
// exponential backoff. The caller verifies the digest.
func (r *Reader) Blob(ctx context.Context, path string, d digest.Digest, size int64) io.ReadCloser {
	get := func(ctx context.Context, from int64) (io.ReadCloser, error) {
		repo, err := r.Repository(path)
		if err != nil {
			return nil, err
		}
		client, err := r.client(ctx, repo)
		if err != nil {
			return nil, err
		}
		url := fmt.Sprintf("%s://%s/v2/%s/blobs/%s", r.Scheme(), r.Host(), repo.RepositoryStr(), d)
		return getFrom(ctx, client, url, from)
	}
	return &resuming{ctx: ctx, get: get, size: size, explain: r.Explain}
}

// getFrom opens the blob at an offset, also if the server ignores the offset.
func getFrom(ctx context.Context, client *http.Client, url string, from int64) (io.ReadCloser, error) {
	response, err := link.GetFrom(ctx, client, url, from)
	if err != nil {
		return nil, err
	}
	if err := transport.CheckError(response, http.StatusOK, http.StatusPartialContent); err != nil {
		response.Body.Close()
		return nil, err
	}
	if response.StatusCode == http.StatusOK && from > 0 {
		if _, err := io.CopyN(io.Discard, response.Body, from); err != nil {
			response.Body.Close()
			return nil, err
		}
	}
	return response.Body, nil
}

// resuming reads size bytes over several connections if necessary.
type resuming struct {
	ctx        context.Context
	get        func(ctx context.Context, from int64) (io.ReadCloser, error)
	explain    func(error) error
	size, done int64

	body   io.ReadCloser
	failed int // attempts since the last byte
}

func (r *resuming) Read(p []byte) (int, error) {
	for r.done < r.size {
		n, err := r.read(p[:min(int64(len(p)), r.size-r.done)])
		if n > 0 {
			r.done, r.failed = r.done+int64(n), 0
			return n, nil
		}
		if err := r.pause(err); err != nil {
			return 0, err
		}
	}
	return 0, io.EOF
}

func (r *resuming) read(p []byte) (int, error) {
	if r.body == nil {
		body, err := r.get(r.ctx, r.done)
		if err != nil {
			return 0, err
		}
		r.body = body
	}
	n, err := r.body.Read(p)
	if n == 0 && err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (r *resuming) end() {
	if r.body != nil {
		r.body.Close()
		r.body = nil
	}
}

// pause waits for the backoff without a connection, or returns why a retry cannot succeed.
func (r *resuming) pause(err error) error {
	r.end()
	switch {
	case r.ctx.Err() != nil:
		return context.Cause(r.ctx)
	case err == nil:
		return nil
	}
	r.failed++
	if !passes(err) || r.failed == link.MaxAttempts {
		return r.explain(err)
	}
	return link.Wait(r.ctx, link.Backoff(r.failed), err.Error())
}

func (r *resuming) Close() error {
	r.end()
	return nil
}
