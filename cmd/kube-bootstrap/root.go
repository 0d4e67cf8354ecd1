package main

import (
	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/bundles"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/manual"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/thishost"
)

// newRoot returns the command with all others below it. environ holds the
// variables that are checked, as NAME=VALUE.
func newRoot(con *console.Console, environ []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "kube-bootstrap",
		Short: "Turn hosts that run Docker into a Kubernetes cluster, and revert it",
		Long: `kube-bootstrap turns Linux hosts that already run Docker into a multi-node
Kubernetes cluster. Pods and plain "docker run" containers share one routed
network across hosts, and every change of a host can be reverted.`,
		Example: `  kube-bootstrap master                     # on the first host
  kube-bootstrap token create               # there: prints what to run on the next
  kube-bootstrap turndown                   # on any host: restores its previous state`,
		Version:           thisVersion().String(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetOut(con.Out)
	root.SetErr(con.Err)
	con.Version = programVersion()
	con.AddProgress(root.PersistentFlags())
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		warnOfVariables(con, environ, c)
		return con.CheckProgress()
	}
	root.SetVersionTemplate("{{.Version}}\n")
	addCommands(root, con)
	command.Prepare(root, con.Width)
	completeValues(root, con.Env)
	return root
}

func addCommands(root *cobra.Command, con *console.Console) {
	fresh := func() *cobra.Command { return newRoot(con, nil) }
	addGroup(root, "host", "On the host itself, as root:", thishost.Commands(con)...)
	addGroup(root, "images", "Images without a network:", bundles.Commands(con, thishost.Bootstrap(con))...)
	addGroup(root, "cluster", "Many nodes at once:", localcluster.Commands(con)...)
	addGroup(root, "other", "Other:", append(manual.Commands(con.Out, fresh, programVersion()), settings.Command(con.Out, con.Env), versionCommand(con.Out))...)
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
}

// addGroup adds commands below a title in the help of root.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}
