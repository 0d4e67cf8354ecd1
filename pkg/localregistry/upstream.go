package localregistry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// freshLimit is how long the registry waits for the upstream to name the digest
// of a tag that the store has.
const freshLimit = 5 * time.Second

// askLimit is how long the registry waits for the upstream to answer with a
// manifest, or with the size of a blob. A node then asks the upstream itself.
const askLimit = 30 * time.Second

// silentFor is how long the registry does not ask an upstream for tags that the
// store has, after the upstream did not answer.
const silentFor = 30 * time.Second

// errUpstream is the error that an upstream cannot be asked.
var errUpstream = errors.New("the registry that the image comes from does not answer")

// upstream is a registry that images are pulled from, without credentials.
type upstream struct {
	registry *registry.Registry
	reader   *registry.Reader
	options  []remote.Option // with one connection pool
	failed   atomic.Int64    // when it did not answer last, in seconds
}

// silent reports whether the upstream did not answer a moment ago.
func (u *upstream) silent() bool { return time.Since(time.Unix(u.failed.Load(), 0)) < silentFor }

func newUpstream(m mirror.Mirror) (*upstream, error) {
	if m.Host == "docker.io" {
		m.Host = name.DefaultRegistry
	}
	r := &registry.Registry{Address: m.Address(), Insecure: m.Plain, PlainHTTP: m.Plain}
	reader, err := r.Reader()
	if err != nil {
		return nil, err
	}
	options, err := r.Options(context.Background())
	options = append(options, remote.WithRetryBackoff(remote.Backoff{Steps: 1})) // its pauses do not end with the context; the transport retries
	return &upstream{registry: r, reader: reader, options: options}, err
}

// refused reports whether the upstream itself has answered that it does not serve
// an image, as with 404 or 401. 407 is the answer of a proxy.
func refused(err error) bool {
	var answered *transport.Error
	return errors.As(err, &answered) && answered.StatusCode < http.StatusInternalServerError &&
		answered.StatusCode != http.StatusTooManyRequests && answered.StatusCode != http.StatusProxyAuthRequired
}

// explained adds errUpstream to an error that is no answer of the upstream.
func explained(err error) error {
	if err == nil || refused(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errUpstream, err)
}

// asking returns the context of one question to an upstream.
func asking(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, askLimit)
}

func (u *upstream) with(ctx context.Context) []remote.Option {
	return append(u.options[:len(u.options):len(u.options)], remote.WithContext(ctx))
}

// resolve returns the digest that a tag has now.
func (u *upstream) resolve(ctx context.Context, t target) (digest.Digest, error) {
	ctx, cancel := asking(ctx)
	defer cancel()
	repository, err := u.registry.Repository(t.repository)
	if err != nil {
		return "", err
	}
	tag := repository.Tag(t.reference)
	d, err := remote.Head(tag, u.with(ctx)...)
	if err == nil {
		return digest.Digest(d.Digest.String()), nil
	}
	if refused(err) || ctx.Err() != nil {
		return "", explained(err)
	}
	whole, err := remote.Get(tag, u.with(ctx)...) // some registries do not answer HEAD with the digest
	if err != nil {
		return "", explained(err)
	}
	return digest.Digest(whole.Digest.String()), nil
}

// manifest returns a manifest, whose digest is verified.
func (u *upstream) manifest(ctx context.Context, t target, d digest.Digest) ([]byte, error) {
	ctx, cancel := asking(ctx)
	defer cancel()
	repository, err := u.registry.Repository(t.repository)
	if err != nil {
		return nil, err
	}
	got, err := remote.Get(repository.Digest(d.String()), u.with(ctx)...)
	if err != nil {
		return nil, explained(err)
	}
	return got.Manifest, nil
}

// size returns the size of a blob.
func (u *upstream) size(ctx context.Context, t target, d digest.Digest) (int64, error) {
	ctx, cancel := asking(ctx)
	defer cancel()
	repository, err := u.registry.Repository(t.repository)
	if err != nil {
		return 0, err
	}
	layer, err := remote.Layer(repository.Digest(d.String()), u.with(ctx)...)
	if err != nil {
		return 0, explained(err)
	}
	size, err := layer.Size()
	if err == nil && size < 0 {
		err = errors.New("its answer has no Content-Length")
	}
	return size, explained(err)
}

// blob returns a blob. A broken transfer continues where it ended.
func (u *upstream) blob(ctx context.Context, t target, of v1.Descriptor) io.ReadCloser {
	return u.reader.Blob(ctx, t.repository, of.Digest, of.Size)
}
