package localregistry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

const (
	// freshLimit is the time for the upstream to name the digest of a tag that the store has.
	freshLimit = 5 * time.Second
	// askLimit is the time for an upstream to answer. A node then asks the upstream itself.
	askLimit = 30 * time.Second
	// silentFor is how long an upstream that did not answer is not asked for tags that the store has.
	silentFor = 30 * time.Second
)

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
	// its pauses do not end with the context; the transport retries
	options = append(options, remote.WithRetryBackoff(remote.Backoff{Steps: 1}))
	return &upstream{registry: r, reader: reader, options: options}, err
}

// refused reports whether the upstream itself does not serve an image. 407 is from a proxy.
func refused(err error) bool {
	answered, ok := errors.AsType[*transport.Error](err)
	return ok && answered.StatusCode < http.StatusInternalServerError &&
		answered.StatusCode != http.StatusTooManyRequests && answered.StatusCode != http.StatusProxyAuthRequired
}

// explained adds errUpstream to an error that is no answer of the upstream.
func explained(err error) error {
	if err == nil || refused(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errUpstream, err)
}

type question[T any] func(ctx context.Context, from name.Repository, options []remote.Option) (T, error)

// query asks the upstream of a target about its repository.
func query[T any](ctx context.Context, t target, ask question[T]) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit) //nolint:forbidigo // then the node asks the upstream itself
	defer cancel()
	repository, err := t.upstream.registry.Repository(t.repository)
	if err != nil {
		return answer, err
	}
	answer, err = ask(ctx, repository, append(slices.Clone(t.upstream.options), remote.WithContext(ctx)))
	return answer, explained(err)
}

// resolve returns the digest that a tag has at its upstream now.
func (t target) resolve(ctx context.Context) (digest.Digest, error) {
	return query(ctx, t, func(ctx context.Context, from name.Repository, options []remote.Option) (digest.Digest,
		error) {
		d, err := remote.Head(from.Tag(t.reference), options...)
		if err == nil {
			return digest.Digest(d.Digest.String()), nil
		}
		if refused(err) || ctx.Err() != nil {
			return "", err
		}
		// some registries do not answer HEAD with the digest
		whole, err := remote.Get(from.Tag(t.reference), options...)
		if err != nil {
			return "", err
		}
		return digest.Digest(whole.Digest.String()), nil
	})
}

// pullManifest returns a manifest, whose digest is verified.
func (t target) pullManifest(ctx context.Context, d digest.Digest) ([]byte, error) {
	return query(ctx, t, func(_ context.Context, from name.Repository, options []remote.Option) ([]byte, error) {
		got, err := remote.Get(from.Digest(d.String()), options...)
		if err != nil {
			return nil, err
		}
		return got.Manifest, nil
	})
}

// size returns the size of a blob.
func (t target) size(ctx context.Context, d digest.Digest) (int64, error) {
	return query(ctx, t, func(_ context.Context, from name.Repository, options []remote.Option) (int64, error) {
		layer, err := remote.Layer(from.Digest(d.String()), options...)
		if err != nil {
			return 0, err
		}
		size, err := layer.Size()
		if err == nil && size < 0 {
			err = errors.New("its answer has no Content-Length")
		}
		return size, err
	})
}
