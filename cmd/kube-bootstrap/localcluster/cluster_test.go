package localcluster

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTheNameOfTheCluster: --cluster is another word for --name, and neither
// hides the variable.
func TestTheNameOfTheCluster(t *testing.T) {
	env := func(name string) string { return map[string]string{"KUBE_BOOTSTRAP_NAME": "env"}[name] }
	for want, args := range map[string][]string{"env": nil, "one": {"--name", "one"}, "two": {"--cluster", "two"}} {
		c := &cobra.Command{}
		o := AddNameFlags(&console.Console{Env: env}, c)
		must.NoError(t, c.ParseFlags(args))
		c.SetContext(t.Context())
		if err := c.PreRunE(c, nil); err != nil || o.Name != want {
			t.Errorf("%q: cluster %q, %v, want %q", args, o.Name, err, want)
		}
	}
}
