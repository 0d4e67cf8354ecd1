package offline

import "fmt"

// Option says what a bundle is to be opened with.
type Option func(*Bundle) error

// WithBase names the bundle that has what one built with --base leaves out. A
// bundle that leaves out nothing needs none.
func WithBase(path string) Option {
	return func(b *Bundle) error {
		if path == "" || b.Base == nil {
			return nil
		}
		base, err := Open(path)
		if err != nil {
			return fmt.Errorf("its base: %w", err)
		}
		b.base = base // closed with b, also when it is the wrong one
		if base.identity() != b.Base.Manifest {
			return fmt.Errorf("%s, of Kubernetes %s, is not the base it was built on: that one is of Kubernetes %s and has the manifest %s",
				path, base.Versions.Kubernetes, b.Base.Kubernetes, b.Base.Manifest)
		}
		return nil
	}
}

// SignedBy refuses a bundle that is not signed by the key whose public half is
// in that file. An empty path asks for no signature.
func SignedBy(keyFile string) Option {
	return func(b *Bundle) error {
		if keyFile == "" {
			return nil
		}
		key, err := readVerifyKey(keyFile)
		if err != nil {
			return fmt.Errorf("verify key: %w", err)
		}
		return verifySignature(key, b.raw, b.signature)
	}
}
