package bundles

import (
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestOnlyTheAddonsThatAreAskedFor: MetalLB takes minutes to compile.
func TestOnlyTheAddonsThatAreAskedFor(t *testing.T) {
	v, err := image.For("", image.Versions{})
	must.NoError(t, err)
	some, all := buildOf(v, []string{"metrics-server", "./app.yaml"}), buildAll(v)
	if len(all.Images) > 0 || all.Output == some.Output {
		t.Errorf("all images: %v to %s, some to %s", all.Images, all.Output, some.Output)
	}
	for name, want := range map[string]bool{
		"hyperkube": true, "pause": true, "metrics-server": true, "local-path-provisioner": false,
		"metallb-speaker": false,
	} {
		if slices.Contains(some.Images, name) != want {
			t.Errorf("%s: want %t in %v", name, want, some.Images)
		}
	}
	if none := buildOf(v, nil); slices.Contains(none.Images, "metrics-server") ||
		!slices.Contains(none.Images, "pause") {
		t.Errorf("without addons: %v", none.Images)
	}
	if HasAddons("/none", nil) {
		t.Error("a bundle that does not exist has the addons")
	}
}
