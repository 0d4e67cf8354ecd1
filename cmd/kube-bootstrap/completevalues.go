package main

import (
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
)

// fileFlags are the flags that take a file or, without extensions, any path.
var fileFlags = map[string][]string{
	"config": {"yaml", "yml", "json"}, "timeline": {"json"}, "log-file": {},
	"bundle": {"zst"}, "bundle-base": {"zst"}, "base": {"zst"}, "to": {"zst"},
	"token-file": {}, "registry-password-file": {}, "registry-token-file": {},
	"registry-ca": {}, "registry-cert": {}, "registry-key": {}, "ca-file": {}, "oidc-ca-file": {},
	"audit-policy-file": {"yaml", "yml", "json"},
	"verify-key":        {}, "sign-key": {}, "kubeconfig": {}, "file": {}, "schema": {"json"}, "cri-socket": {},
	"k8s-dir": nil, "report-dir": nil, "flannel-subnet-dir": nil,
}

// completeValues makes completion offer values, where the shell would offer files for all.
func completeValues(c *cobra.Command, values map[string]cobra.CompletionFunc) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, known := c.GetFlagCompletionFunc(f.Name); known || f.NoOptDefVal != "" {
			return
		}
		extensions, file := fileFlags[f.Name]
		switch {
		case file && extensions == nil:
			_ = c.MarkFlagDirname(f.Name)
		case file:
			_ = c.MarkFlagFilename(f.Name, extensions...)
		default:
			complete := values[f.Name]
			if complete == nil {
				complete = cobra.NoFileCompletions
			}
			_ = c.RegisterFlagCompletionFunc(f.Name, complete)
		}
	})
	takesFile := strings.HasSuffix(c.Use, " FILE") || strings.HasSuffix(c.Use, " DIR")
	if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && !c.HasSubCommands() && !takesFile {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// flagValues returns what completes the values of flags that take no file.
func flagValues(env func(string) string) map[string]cobra.CompletionFunc {
	const only, orFile = cobra.ShellCompDirectiveNoFileComp, cobra.ShellCompDirectiveDefault
	return map[string]cobra.CompletionFunc{
		"name":               localcluster.CompleteNames(env),
		"progress":           cobra.FixedCompletions(progress.Modes, only),
		"kubernetes-version": cobra.FixedCompletions(versionNames(), only),
		"cni-plugin":         cobra.FixedCompletions(extension.CNIPlugins, orFile),
		"addons":             cobra.FixedCompletions(append(extension.AddonNames(), extension.NoAddons), orFile),
		"restart-policy":     cobra.FixedCompletions([]string{"no", "on-failure", "always", "unless-stopped"}, only),
		"ignore-preflight":   cobra.FixedCompletions(preflight.ProblemNames(), only),
	}
}

// versionNames returns the newest patch of each supported minor version.
func versionNames() (all []string) {
	for _, m := range catalog.Minors() {
		all = append(all, m.Patch)
	}
	return all
}
