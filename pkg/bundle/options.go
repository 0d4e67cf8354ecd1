package bundle

import "fmt"

// Option is an option of Open.
type Option func(*Bundle) error

// WithBase sets the path of the bundle that contains the blobs omitted here. It
// is ignored for a bundle that omits none.
func WithBase(path string) Option {
	return func(b *Bundle) error {
		if path == "" || b.Base == nil {
			return nil
		}
		base, err := Open(path)
		if err != nil {
			return fmt.Errorf("its base: %w", err)
		}
		b.base = base // closed with b, also if it is the wrong one
		if base.identity() != b.Base.Manifest {
			return fmt.Errorf("%s, of Kubernetes %s, is not the base it was built on: that one is of Kubernetes %s and has the manifest %s",
				path, base.Versions.Kubernetes, b.Base.Kubernetes, b.Base.Manifest)
		}
		return nil
	}
}

// SignedBy refuses a bundle that is not signed by the private key that belongs
// to the public key in that file. An empty path requires no signature.
func SignedBy(keyFile string) Option {
	return func(b *Bundle) error {
		if keyFile == "" {
			return nil
		}
		key, err := readVerificationKey(keyFile)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrKey, err)
		}
		return verifySignature(key, b.raw, b.signature)
	}
}

// WithBroadcast makes all stores that load from bundles with the same broadcast
// share one decompression. A nil broadcast shares nothing.
func WithBroadcast(broadcast *Broadcast) Option {
	return func(b *Bundle) error {
		if broadcast != nil {
			b.broadcast = broadcast
		}
		return nil
	}
}
