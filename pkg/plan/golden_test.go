package plan

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

var update = flag.Bool("update", false, "write the files in testdata")

// TestStepsOfThePlans compares the stages of each plan with a file, so that a change
// of the order is seen in review. `go test ./pkg/plan -update` writes the files.
func TestStepsOfThePlans(t *testing.T) {
	join := func(c *config.Config) { c.Join, c.MasterIP = true, "10.0.0.2" }
	plugin := func(name string) func(*config.Config) { return func(c *config.Config) { c.CNIPlugin = name } }
	for name, c := range map[string]struct {
		plan func(*local.Host) step.Plan
		set  func(*config.Config)
	}{
		"master":         {Master, func(*config.Config) {}},
		"master-join":    {Master, join},
		"master-flannel": {Master, plugin(config.CNIFlannel)},
		"master-none":    {Master, plugin(config.CNINone)},
		"worker":         {Worker, func(c *config.Config) { c.MasterIP = "10.0.0.2" }},
		"worker-flannel": {Worker, plugin(config.CNIFlannel)},
		"load":           {Load, func(*config.Config) {}},
	} {
		cfg := config.Default()
		cfg.HostName, cfg.IPAddress, cfg.Addons = "one", "10.0.0.1", nil
		c.set(&cfg)
		h := installedWith(t, host.Files{Root: t.TempDir()}, cfg)
		matches(t, filepath.Join("testdata", name+".txt"), stages(c.plan(h)))
	}
}

// stages returns one line per stage.
func stages(p step.Plan) string {
	var text strings.Builder
	for _, stage := range p {
		var names []string
		for _, s := range stage {
			names = append(names, s.Name)
		}
		text.WriteString(strings.Join(names, ", ") + "\n")
	}
	return text.String()
}

func matches(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must.NoError(t, err)
	if got != string(want) {
		t.Errorf("%s: the steps are\n%s\nwant\n%s", path, got, want)
	}
}
