package bundle

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"

	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Check verifies the frames that the images of an architecture need without decompressing them. This takes a fraction
// of a second, and finds all damage before anything is loaded.
func (b *Bundle) Check(ctx context.Context, arch string) error {
	if !slices.Contains(b.Archs(), arch) {
		return errOtherArch(b, arch)
	}
	return b.CheckImages(ctx, b.Manifest.Images, arch)
}

func errOtherArch(b *Bundle, arch string) error {
	return fmt.Errorf("bundle %s: it is for %s, not for %s", b.Path, strings.Join(b.Archs(), ", "), arch)
}

// CheckImages is Check for some images.
func (b *Bundle) CheckImages(ctx context.Context, images []MultiPlatformImage, arch string) error {
	if b.fetch != nil {
		return nil // blobs from a registry are verified when they are read
	}
	if !holds(b, arch) {
		return errOtherArch(b, arch)
	}
	return b.checkBlobs(ctx, b.Manifest.blobsOf(images, arch))
}

func (b *Bundle) checkBlobs(ctx context.Context, blobs []digest.Digest) error {
	frames, inBase := map[int]bool{}, []digest.Digest(nil)
	for _, d := range blobs {
		blob, ok := b.Manifest.Blobs[d]
		switch {
		case !ok:
			return fmt.Errorf("bundle %s: blob %s: it is not in the bundle", b.Path, d)
		case !blob.InBase:
			frames[blob.Frame] = true
		case b.base == nil:
			return fmt.Errorf("bundle %s: blob %s: %w", b.Path, d, b.errNoBase())
		default:
			inBase = append(inBase, d)
		}
	}
	running, frameCtx := errgroup.WithContext(ctx)
	running.SetLimit(runtime.GOMAXPROCS(0))
	for _, frame := range slices.Sorted(maps.Keys(frames)) {
		running.Go(func() error { return b.checkOnce(frameCtx, frame) })
	}
	if err := running.Wait(); err != nil {
		return fmt.Errorf("bundle %s: %w", b.Path, err)
	}
	if len(inBase) == 0 {
		return nil
	}
	return b.base.checkBlobs(ctx, inBase)
}

// verifiedFrame is a frame in a file that nobody has changed since.
type verifiedFrame struct {
	file   host.Identity
	digest digest.Digest
}

// checkOnce checks a frame, unless a bundle with the same broadcast has done so: the preflight verifies what the loads
// read later.
func (b *Bundle) checkOnce(ctx context.Context, frame int) error {
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	key := verifiedFrame{host.IdentityOf(info), b.Manifest.Frames[frame].Digest}
	if _, done := b.broadcast.verified.Load(key); done {
		return nil
	}
	if err = b.checkFrame(ctx, frame); err == nil {
		b.broadcast.verified.Store(key, true)
	}
	return err
}

func (b *Bundle) checkFrame(ctx context.Context, frame int) error {
	check := b.Manifest.Frames[frame].Digest.Verifier()
	if _, err := io.Copy(check, WithContext(ctx, b.section(frame))); err != nil {
		return err
	}
	if !check.Verified() {
		return fmt.Errorf("frame %d is cut short or damaged: copy the bundle again", frame)
	}
	return nil
}
