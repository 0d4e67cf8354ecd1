// Package upgrades has the commands that upgrade Kubernetes: on this host, and on all nodes of a cluster.
package upgrades

import (
	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/thishost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// Host returns the command "upgrade" for this host.
func Host(con *console.Console) *cobra.Command {
	return command.Parent("upgrade", "Upgrade Kubernetes to the next minor version, in two steps",
		planCommand(con), applyCommand(con), rollbackCommand(con), finishCommand(con))
}

func applyCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "apply",
		Short: "Install the next minor version on this host, which still emulates the old one",
		Long: `Load the images of the next minor version. On a control plane, replace the API
server, the controller manager and the scheduler by those of the new version,
which emulate the old one: nothing is stored that the old version cannot read.
etcd, the kubelet and the addons stay as they are. If the new programs do not
become Ready, the host returns to the old ones.

Run it on the control planes, one after the other, and then on the workers.
"upgrade rollback" takes it back, "upgrade finish" completes the upgrade.`,
		Example: `  kube-bootstrap upgrade apply
  kube-bootstrap upgrade apply --to 1.37 --bundle kube-amd64.tar.zst`,
	}
	to := c.Flags().String("to", "",
		"release or minor version of Kubernetes (empty: the newest patch of the next one)")
	bundle := c.Flags().String("bundle", "", "bundle with the images of that version")
	imagesOnly := c.Flags().Bool("images-only", false, "load the images and change nothing else")
	return stepCommand(con, c, func(u hostRun) error {
		if *imagesOnly {
			return u.load(*to, *bundle)
		}
		return u.locked(func(u hostRun) error { return u.apply(*to, *bundle) })
	})
}

func rollbackCommand(con *console.Console) *cobra.Command {
	return stepCommand(con, &cobra.Command{
		Use:   "rollback",
		Short: "Return this host to the version before \"upgrade apply\"",
		Long: `Return this host to the programs before "upgrade apply", and remove the images of
the new version. Nothing that was written since is lost. It is refused after
"upgrade finish" has begun on this host. Run it on the control planes, one after
the other, and on the workers.`,
		Example: "  kube-bootstrap upgrade rollback",
	}, func(u hostRun) error { return u.locked(hostRun.rollback) })
}

func finishCommand(con *console.Console) *cobra.Command {
	return stepCommand(con, &cobra.Command{
		Use:   "finish",
		Short: "Complete the upgrade of this host, after which it cannot return",
		Long: `End the emulation of the old version on this control plane. When no control plane
emulates it any more, install etcd, the kubelet and the addons of the new version.
From here on, only a backup from before leads back to the old version.

With several control planes, run it on all of them, and then on all of them again:
the first run ends the emulation, the second run completes the upgrade. After that,
run it on the workers. The pods of a worker keep
running; drain it first if they must not notice the new kubelet.`,
		Example: "  kube-bootstrap upgrade finish",
	}, func(u hostRun) error { return u.locked(hostRun.finish) })
}

// stepCommand makes a command of a step of an upgrade.
func stepCommand(con *console.Console, c *cobra.Command, do func(hostRun) error) *cobra.Command {
	con.AddRecords(c.Flags())
	dryRun, format := thishost.AddDryRun(c, "list every change and make none")
	holder := c.Flags().String(upgrade.HolderFlag, "", "holder of the lock of the upgrade, which runs this command")
	_ = c.Flags().MarkHidden(upgrade.HolderFlag)
	c.RunE = func(c *cobra.Command, _ []string) error {
		h, release, err := thishost.OpenInstalled(c.Context())
		if err != nil {
			return err
		}
		defer release()
		runner, err := con.BeginLogged("upgrade-" + c.Name())
		if err != nil {
			return err
		}
		return do(hostRun{command: c, con: con, h: h, dryRun: *dryRun, format: *format, holder: *holder, runner: runner})
	}
	return c
}

// hostRun is a step of an upgrade on this host.
type hostRun struct {
	command *cobra.Command
	con     *console.Console
	h       *local.Host
	dryRun  bool
	format  output.Format
	holder  string // of the lock; "": this process
	runner  *step.Runner
}
