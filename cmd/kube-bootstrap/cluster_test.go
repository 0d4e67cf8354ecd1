package main

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestTheNameOfTheCluster: --cluster is another word for --name, and neither
// hides the variable.
func TestTheNameOfTheCluster(t *testing.T) {
	for want, args := range map[string][]string{"env": nil, "one": {"--name", "one"}, "two": {"--cluster", "two"}} {
		p := testProgram()
		p.env = func(name string) string { return map[string]string{"KUBE_BOOTSTRAP_NAME": "env"}[name] }
		c := &cobra.Command{}
		o := p.addNameFlags(c)
		if err := c.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		c.SetContext(t.Context())
		if err := p.clusterOptions(c, o); err != nil || o.Name != want {
			t.Errorf("%q: cluster %q, %v, want %q", args, o.Name, err, want)
		}
	}
}
