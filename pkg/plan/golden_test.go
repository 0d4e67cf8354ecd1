package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	localcluster "github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/recovery"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestStepsOfThePlans compares the stages of each plan with a file, so that a change
// of the order is seen in review.
func TestStepsOfThePlans(t *testing.T) {
	join := func(c *config.Config) { c.Join, c.MasterIP = true, netip.MustParseAddr("10.0.0.2") }
	plugin := func(name string) func(*config.Config) { return func(c *config.Config) { c.CNIPlugin = name } }
	for name, c := range map[string]struct {
		plan func(*local.Host) step.Plan
		set  func(*config.Config)
	}{
		"master":         {ControlPlane, func(*config.Config) {}},
		"master-join":    {ControlPlane, join},
		"master-flannel": {ControlPlane, plugin(extension.CNIFlannel)},
		"master-none":    {ControlPlane, plugin(extension.CNINone)},
		"worker":         {Worker, func(c *config.Config) { c.MasterIP = netip.MustParseAddr("10.0.0.2") }},
		"worker-flannel": {Worker, plugin(extension.CNIFlannel)},
		"load":           {Load, func(*config.Config) {}},
		"restore":        {restored, func(*config.Config) {}},
		"recover":        {Recover, join},
	} {
		cfg := config.Default()
		cfg.HostName, cfg.IPAddress, cfg.Addons = "one", netip.MustParseAddr("10.0.0.1"), nil
		c.set(&cfg)
		h := installedWith(t, host.Files{Root: t.TempDir()}, cfg)
		p := c.plan(h)
		_, err := step.NewGraph(p)
		must.NoError(t, err)
		hosttest.Golden(t, name+".txt", []byte(stages(p)))
	}
}

func restored(h *local.Host) step.Plan { return Restore(h, &recovery.Backup{}, nil) }

// TestMasterSaysThatHostsCanJoin: `cluster up` waits for the event of this step.
func TestMasterSaysThatHostsCanJoin(t *testing.T) {
	cfg := config.Default()
	cfg.HostName, cfg.IPAddress = "one", netip.MustParseAddr("10.0.0.1")
	steps := ControlPlane(installedWith(t, host.Files{Root: t.TempDir()}, cfg)).Steps()
	if !slices.ContainsFunc(steps, func(s step.Step) bool { return s.ID == localcluster.LetsJoin }) {
		t.Errorf("the plan of a control plane has no step %q", localcluster.LetsJoin)
	}
}

// stages returns one line per stage.
func stages(p step.Plan) string {
	var text strings.Builder
	for _, stage := range p.Wanted() {
		var names []string
		for _, s := range stage {
			names = append(names, fmt.Sprintf("%s (%s)", s.Name, s.ID))
		}
		text.WriteString(strings.Join(names, ", ") + "\n")
	}
	return text.String()
}
