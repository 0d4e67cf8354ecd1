package localcluster

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
)

func clusterSnapshot(con *console.Console) *cobra.Command {
	return command.Parent("snapshot", "Save, restore, list and remove snapshots of a cluster",
		snapshotSave(con), snapshotList(con), snapshotRestore(con), snapshotRemove(con))
}

func snapshotSave(con *console.Console) *cobra.Command {
	save := func(ctx context.Context, o cluster.Options, name string, emit func(session.HostEvent)) error {
		return snapshot.Save(ctx, o.Selection, name, emit)
	}
	return onSnapshot(con, "save snapshot", save, nil, &cobra.Command{
		Use:   "save SNAPSHOT",
		Short: "Save the disks of all hosts of a cluster at one moment",
		Long: `Keep what all hosts of a cluster have on their disks: its objects, its images, its
volumes, its certificates. All hosts stand still at the same moment while that
is copied, and go on afterwards. A cluster that is off can be kept as well.`,
		Example: "  kube-bootstrap cluster snapshot save before-upgrade\n  kube-bootstrap cluster snapshot save " +
			"tried --name second",
	})
}

func snapshotRestore(con *console.Console) *cobra.Command {
	return onSnapshot(con, "restore snapshot", cluster.RestoreSnapshot, snapshot.RestoreLosses, &cobra.Command{
		Use:   "restore SNAPSHOT",
		Short: "Restore a cluster from a snapshot",
		Long: `Restore a cluster from a snapshot, and wait until its nodes are
Ready. What has become of the cluster since then is lost, which must be confirmed
on the terminal or with --yes; the snapshot stays and can be restored again. A
restore that was cut short is finished by the same command or by ` + "`cluster up`" + `.`,
		Example: "  kube-bootstrap cluster snapshot restore first\n  kube-bootstrap cluster snapshot restore tried " +
			"--name second --yes",
	})
}

func snapshotRemove(con *console.Console) *cobra.Command {
	remove := func(ctx context.Context, o cluster.Options, name string, _ func(session.HostEvent)) error {
		return snapshot.Remove(ctx, o.Selection, name)
	}
	return onSnapshot(con, "remove snapshot", remove, snapshot.RemoveLosses, &cobra.Command{
		Use:     "remove SNAPSHOT",
		Short:   "Remove a snapshot; the cluster is not touched",
		Example: "  kube-bootstrap cluster snapshot remove before-upgrade",
	})
}

// onSnapshot is a command about one snapshot. The user must confirm the losses, unless nil.
func onSnapshot(con *console.Console, what string,
	do func(context.Context, cluster.Options, string, func(session.HostEvent)) error,
	losses func(context.Context, session.Selection, string) ([]string, error), c *cobra.Command,
) *cobra.Command {
	o := AddNameFlags(con, c)
	yes := console.AddYes(c, losses != nil)
	if losses != nil { // save takes a new name
		c.ValidArgsFunction = command.FirstArg(snapshotListing.complete(con.Env))
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := con.Confirm(c.Context(), *yes,
			func(ctx context.Context) ([]string, error) { return losses(ctx, o.Selection, args[0]) }); err != nil {
			return err
		}
		runner, err := con.Begin()
		if err != nil {
			return err
		}
		started := time.Now()
		if err := do(c.Context(), *o, args[0], func(e session.HostEvent) { runner.Emit(e.Event) }); err != nil {
			return exit.Firm(err)
		}
		con.End()
		con.Say(fmt.Sprintf("%s %s of cluster %s: done in %s", what, args[0], o.Name,
			progress.Took(time.Since(started))))
		return nil
	}
	return c
}

func snapshotList(con *console.Console) *cobra.Command {
	return snapshotListing.run(con, AddNameFlags, &cobra.Command{
		Use:     "list",
		Short:   "List the snapshots of a cluster, oldest first",
		Example: "  kube-bootstrap cluster snapshot list\n  kube-bootstrap cluster snapshot list --name second -o json",
	})
}
