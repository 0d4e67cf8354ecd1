package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Bundle is an open bundle. Several goroutines may read it at the same time.
type Bundle struct {
	Manifest  Manifest
	Path      string // of the file, or the reference in a registry
	file      *os.File
	size      int64
	raw       []byte     // the manifest as it is written
	signature []byte     // nil: not signed
	base      *Bundle    // nil: not needed or not given
	broadcast *Broadcast // of all stores that load from it
	fetch     Fetch      // nil: the blobs are in the file
}

// Fetch opens a blob that is not in a file. The caller verifies its digest.
type Fetch func(digest.Digest) (io.ReadCloser, error)

// Remote returns the bundle with this manifest, as it is written. The function that fetch returns opens its blobs.
func Remote(path string, manifest, signature []byte, fetch func(Manifest) Fetch) (*Bundle, error) {
	b := &Bundle{Path: path, broadcast: &Broadcast{}, signature: signature}
	if err := b.parse(manifest, math.MaxInt64); err != nil {
		return nil, err
	}
	b.fetch = fetch(b.Manifest)
	return b, nil
}

// missingError is the error for a missing file. It matches fs.ErrNotExist.
type missingError struct{ path string }

func (e missingError) Error() string {
	return "no bundle at " + e.path + "; make one by `kube-bootstrap offline build` and copy it there"
}

func (missingError) Unwrap() error { return fs.ErrNotExist }

// Open opens a bundle and reads its manifest. Blobs are verified when they are read; Check and Verify do so before.
func Open(path string, options ...Option) (*Bundle, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingError{path}
	}
	if err != nil {
		return nil, err
	}
	b := &Bundle{Path: path, file: file, broadcast: &Broadcast{}}
	err = b.readHead()
	for _, option := range options {
		if err == nil {
			err = option(b)
		}
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	return b, nil
}

// Close closes the files of the bundle and of its base.
func (b *Bundle) Close() error {
	if b.base != nil {
		defer b.base.Close()
	}
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}

// duplicate returns the same bundle with files of its own, to be closed separately.
func (b *Bundle) duplicate() (*Bundle, error) {
	dup := *b
	if b.file != nil {
		fd, err := unix.FcntlInt(b.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		dup.file = os.NewFile(uintptr(fd), b.Path)
	}
	if b.base == nil {
		return &dup, nil
	}
	var err error
	if dup.base, err = b.base.duplicate(); err != nil {
		return nil, errors.Join(err, dup.Close())
	}
	return &dup, nil
}

// Identity returns the digest of the manifest, which contains the digests of all blobs.
func (b *Bundle) Identity() digest.Digest { return digest.FromBytes(b.raw) }

// Members returns the manifest and the signature as they are written. The signature of an unsigned bundle is nil.
func (b *Bundle) Members() (manifest, signature []byte) { return b.raw, b.signature }

// Signer returns the fingerprint of the key that the bundle claims to be signed by; only SignedBy verifies it. It is
// empty for an unsigned bundle.
func (b *Bundle) Signer() string {
	if b.signature == nil {
		return ""
	}
	s, err := parseSignature(b.signature)
	if err != nil {
		return "unreadable"
	}
	return s.Signer
}

// Find returns the image of a reference for an architecture.
func (b *Bundle) Find(ref, arch string) (MultiPlatformImage, error) {
	found, err := b.Manifest.Find(ref, arch)
	if err == nil && !holds(b, arch) {
		err = fmt.Errorf("it is for %s, not for %s", strings.Join(b.Archs(), ", "), arch)
	}
	return found, step.Wrap(err, "bundle %s", b.Path)
}

// CNIPlugins returns the digests of the CNI plugins for an architecture by name.
func (b *Bundle) CNIPlugins(arch string) (map[string]digest.Digest, error) {
	all, ok := b.Manifest.Plugins[arch]
	if !ok {
		return nil, fmt.Errorf("bundle %s holds no CNI plugins for %s", b.Path, arch)
	}
	return all.Files, nil
}

// ReadCNIPlugins opens the layer with all CNI plugins, whatever the names.
func (b *Bundle) ReadCNIPlugins(_ context.Context, arch string, _ []string) io.ReadCloser {
	return Pipe(func(w io.Writer) error { return b.copyBlob(w, b.Manifest.Plugins[arch].Layer) })
}

// Option is an option of Open.
type Option func(*Bundle) error

// WithBase sets the path of the bundle that contains the blobs omitted here. It is ignored for a bundle that omits
// none.
func WithBase(path string) Option {
	return func(b *Bundle) error {
		if path == "" || b.Manifest.Base == nil {
			return nil
		}
		base, err := Open(path)
		if err != nil {
			return fmt.Errorf("its base: %w", err)
		}
		b.base = base // closed with b, also if it is the wrong one
		if base.Identity() != b.Manifest.Base.Manifest {
			return fmt.Errorf("%s (Kubernetes %s) is not the base of this bundle; the base is of Kubernetes %s and "+
				"its manifest has the digest %s",
				path, base.Manifest.Versions.Kubernetes, b.Manifest.Base.Kubernetes, b.Manifest.Base.Manifest)
		}
		return nil
	}
}

// SignedBy refuses a bundle that is not signed by the private key that belongs to the public key in that file. An
// empty path requires no signature.
func SignedBy(keyFile string) Option {
	return func(b *Bundle) error {
		if keyFile == "" {
			return nil
		}
		key, err := readVerificationKey(keyFile)
		if err != nil {
			return fmt.Errorf("%w: %s", ErrKey, err.Error()) // fs.ErrNotExist would mean that the bundle is missing
		}
		return verifySignature(key, b.raw, b.signature)
	}
}

// SignedByKey is SignedBy with the content of the file.
func SignedByKey(text []byte) Option {
	return func(b *Bundle) error {
		if len(text) == 0 {
			return nil
		}
		key, err := parseVerificationKey(text, "the key that the cluster requires")
		if err != nil {
			return fmt.Errorf("%w: %w", ErrKey, err)
		}
		return verifySignature(key, b.raw, b.signature)
	}
}

// WithBroadcast makes all stores that load from bundles with the same broadcast share one decompression, and verifies
// each frame once. A nil broadcast shares nothing.
func WithBroadcast(broadcast *Broadcast) Option {
	return func(b *Bundle) error {
		if broadcast != nil {
			b.broadcast = broadcast
		}
		if b.base != nil {
			b.base.broadcast = b.broadcast
		}
		return nil
	}
}
