package parts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTheStepsOfAddons: addons that the settings in force have and the new ones do not are removed,
// and only by a control plane that was one before. A control plane that joins applies none.
func TestTheStepsOfAddons(t *testing.T) {
	const server, path, metallb = extension.AddonMetricsServer, extension.AddonLocalPath, extension.AddonMetalLB
	for name, c := range map[string]struct {
		saved     []string
		role      string
		wanted    []string
		join      bool
		addresses bool // of the load balancer, in the settings in force
		dropped   []string
		steps     int
	}{
		"first run":         {nil, "", []string{server, "/root/app.yaml"}, false, false, nil, 2},
		"one less":          {[]string{server, path}, local.ControlPlane, []string{server}, false, false, []string{path}, 2},
		"none":              {[]string{server, path}, local.ControlPlane, nil, false, false, []string{server, path}, 2},
		"a manifest less":   {[]string{"/root/app.yaml"}, local.ControlPlane, nil, false, false, nil, 0},
		"was a worker":      {[]string{server}, local.Worker, nil, false, false, nil, 0},
		"joins":             {[]string{server}, local.ControlPlane, []string{server}, true, false, nil, 0},
		"without addresses": {[]string{metallb}, local.ControlPlane, []string{metallb}, false, true, nil, 2},
	} {
		h := &local.Host{Config: config.Default(), Files: host.Files{Root: t.TempDir()}}
		h.Config.Addons, h.Config.Join = c.wanted, c.join
		h.Saved.Role, h.Saved.Config.Addons = c.role, c.saved
		if c.addresses {
			h.Saved.Config.LoadBalancerAddresses = []addresses.Range{{}}
		}
		a := newAddons(h)
		if !slices.Equal(a.Dropped, c.dropped) {
			t.Errorf("%s: dropped %q, want %q", name, a.Dropped, c.dropped)
		}
		if got := a.Further(); len(got) != c.steps {
			t.Errorf("%s: steps %v, want %d", name, ids(got), c.steps)
		}
	}
}

func ids(steps []step.Step) (all []step.ID) {
	for _, s := range steps {
		all = append(all, s.ID)
	}
	return all
}

// TestAManifestOfTheUserIsKept: a second run does not depend on the user's file, and a file that the
// user has changed is applied again.
func TestAManifestOfTheUserIsKept(t *testing.T) {
	const first, second = "kind: ConfigMap # 1\n", "kind: ConfigMap # 2\n"
	h := &local.Host{Config: config.Default(), Files: host.Files{Root: t.TempDir()}}
	path := must.Write(t, filepath.Join(t.TempDir(), "app.yaml"), first)
	m := newAddons(h).Manifests.Addon(path)
	text := func(want string) {
		t.Helper()
		if got, err := m.text(t.Context()); err != nil || string(got) != "# from "+path+"\n"+want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	text(first)
	must.NoError(t, m.keep(t.Context()))
	must.Write(t, path, second)
	text(second)
	must.NoError(t, os.Remove(path))
	text(first)
	if _, err := newAddons(h).Manifests.Addon(path + ".other").text(t.Context()); !os.IsNotExist(err) {
		t.Errorf("another manifest: %v", err)
	}
}

func TestTheClaimsOfLocalVolumes(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	if got := LocalVolumes(files); got != nil {
		t.Errorf("without volumes: %q", got)
	}
	must.NoError(t, files.MkdirAll(kubelet.VolumesDir+"/pvc-1_default_data-db_0"))
	if got := LocalVolumes(files); strings.Join(got, " ") != "default/data-db_0" {
		t.Errorf("got %q", got)
	}
}
