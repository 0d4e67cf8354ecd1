package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/previous"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/spelling"
)

// ownVariables are variables that belong to no flag: users set the first ones,
// the program and its tests set the others for their processes and containers.
var ownVariables = []string{
	"KUBE_BOOTSTRAP_CACHE", "KUBE_BOOTSTRAP_CONFIG", "KUBE_BOOTSTRAP_DEBIAN_MIRROR",
	"KUBE_BOOTSTRAP_BACKEND", "KUBE_BOOTSTRAP_CERTIFICATES", "KUBE_BOOTSTRAP_NETWORK", "KUBE_BOOTSTRAP_READS",
	"KUBE_BOOTSTRAP_TEST_BUNDLE", "KUBE_BOOTSTRAP_TEST_EVENTS",
}

// warnOfVariables warns of variables of the program that no command reads, as if misspelt.
func warnOfVariables(con *console.Console, environ []string, c *cobra.Command) {
	if con.Mode() == "json" || c.Hidden {
		return
	}
	known := readVariables(c.Root())
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" || !strings.HasPrefix(name, "KUBE_BOOTSTRAP_") && !strings.HasPrefix(name, "K8S_DIND_") ||
			slices.Contains(known, name) {
			continue
		}
		con.Warn("warning: the variable " + name + " is not read: there is no such flag" + spelling.Meant(name, known))
	}
}

// readVariables returns the variables that any command reads. A user may set
// one for all commands, though some of them do not have its flag.
func readVariables(root *cobra.Command) []string {
	known := slices.AppendSeq(slices.Clone(ownVariables), maps.Keys(previous.ClusterVariables()))
	for _, s := range config.Settings(config.Every) {
		known = append(known, s.EnvNames()...)
	}
	command.Each(root, func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, config.EnvName(f.Name)) })
	})
	for _, name := range slices.Clone(known) {
		if flag, ours := strings.CutPrefix(name, "KUBE_BOOTSTRAP_"); ours {
			known = append(known, "K8S_DIND_"+flag)
		}
	}
	return known
}
