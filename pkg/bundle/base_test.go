package bundle

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// writeDelta writes a bundle of another patch version on top of a whole one.
func writeDelta(t *testing.T) (delta, base, whole string) {
	t.Helper()
	next, err := image.For("v1.37.0", image.Versions{})
	must.NoError(t, err)
	base = writeSmall(t)
	c := builderFor(t, next, "amd64", "arm")
	must.NoError(t, c.ExcludeBase(opened(t, base)))
	return writeOf(t, c), base, writeOf(t, builderFor(t, next, "amd64", "arm"))
}

func TestBase(t *testing.T) {
	delta, base, whole := writeDelta(t)
	must.NoError(t, verified(t.Context(), delta, WithBase(base)))
	b, full := opened(t, delta, WithBase(base)), opened(t, whole)
	if err := b.Check(t.Context(), "arm"); err != nil {
		t.Error(err)
	}
	if missing := b.Report(Wanted{Kubernetes: "v1.37.0"}).Missing; len(missing) > 0 {
		t.Errorf("with its base: missing %q", missing)
	}
	for d := range full.Manifest.Blobs {
		var text strings.Builder
		if err := b.copyBlob(&text, d); err != nil {
			t.Error(err)
		}
	}
	own := 0
	for _, blob := range b.Manifest.Blobs {
		if !blob.InBase {
			own++
		}
	}
	if own == 0 || own >= len(b.Manifest.Blobs)-10 {
		t.Errorf("%d of %d blobs lie in the delta", own, len(b.Manifest.Blobs))
	}
}

func TestBaseThatIsMissingOrAnother(t *testing.T) {
	delta, base, whole := writeDelta(t)
	b := opened(t, delta)
	if err := b.Verify(t.Context()); err != nil {
		t.Errorf("what the delta has itself: %v", err)
	}
	if missing := b.Report(Wanted{}).Missing; len(missing) != 1 ||
		!strings.Contains(missing[0], "its base, the bundle of Kubernetes "+catalog.Newest().Patch) {
		t.Errorf("missing %q", missing)
	}
	if err := b.Check(t.Context(), "arm"); err == nil ||
		!strings.Contains(err.Error(), "give that bundle with --bundle-base") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(delta, WithBase(whole)); err == nil ||
		!strings.Contains(err.Error(),
			"is not the base of this bundle; the base is of Kubernetes "+catalog.Newest().Patch) {
		t.Errorf("got %v", err)
	}
	if _, err := Open(delta, WithBase(base+".gone")); err == nil ||
		!strings.Contains(err.Error(), "no bundle at "+base+".gone") {
		t.Errorf("got %v", err)
	}
	if err := builderFor(t, bundletest.Versions(t), "amd64").ExcludeBase(b); err == nil ||
		!strings.Contains(err.Error(), "cannot be a base") {
		t.Errorf("got %v", err)
	}
	if err := verified(t.Context(), base, WithBase("/nowhere")); err != nil {
		t.Errorf("a whole bundle needs no base: %v", err)
	}
}

func TestDamagedBase(t *testing.T) {
	delta, base, _ := writeDelta(t)
	_, _, rest := parts(t, base)
	whole := must.Read(t, base)
	whole[len(whole)-len(rest)/2] ^= 0x10
	must.Write(t, base, whole)
	if err := verified(t.Context(), delta, WithBase(base)); err == nil ||
		!strings.Contains(err.Error(), "its base: bundle "+base) {
		t.Errorf("got %v", err)
	}
}
