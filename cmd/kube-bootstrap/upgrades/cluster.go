package upgrades

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/upgrades"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Cluster returns the command "upgrade" for all nodes of a cluster.
func Cluster(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade all nodes to the next minor version of Kubernetes",
		Long: `Run "kube-bootstrap upgrade apply" on all nodes: the images are loaded everywhere,
and then the control planes run the new version, one after the other, and emulate
the old one. --rollback returns all nodes to the old version. --finish completes
the upgrade: the emulation ends on one control plane after the other, etcd and the
kubelets follow, and the workers are drained for theirs. After that, only a backup
from before leads back. If a node fails, the others keep what they have.`,
		Example: `  kube-bootstrap cluster upgrade --bundle kube-v1.37.tar.zst
  kube-bootstrap cluster upgrade --rollback
  kube-bootstrap cluster upgrade --finish --max-unavailable 2`,
	}
	o := localcluster.AddNameFlags(con, c)
	var u upgrades.Options
	c.Flags().StringVar(&u.To, "to", "",
		"release or minor version of Kubernetes (empty: the newest patch of the next one)")
	c.Flags().StringVar(&u.Bundle, "bundle", "", "bundle of this machine with the images of that version")
	rollback := c.Flags().Bool("rollback", false, "return all nodes to the version before the upgrade")
	finish := c.Flags().Bool("finish", false, "complete the upgrade, after which the nodes cannot return")
	c.Flags().IntVar(&u.Unavailable, "max-unavailable", 1, "workers that are drained at the same time")
	c.Flags().DurationVar(&u.Drain.Limit, "drain-timeout", step.DefaultLimit, "time for the pods of a worker to end")
	c.Flags().BoolVar(&u.Drain.LoseBare, "lose-pods", false, "also delete pods that no controller makes again")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *rollback && *finish {
			return exit.Usage(errors.New("give --rollback or --finish, not both"))
		}
		if u.Unavailable < 1 {
			return exit.Usage(errors.New("--max-unavailable must be at least 1"))
		}
		u.Selection, u.Holder = o.Selection, holderOf(con)
		return upgradeCluster(c.Context(), con, u, *rollback, *finish)
	}
	return c
}

func upgradeCluster(ctx context.Context, con *console.Console, u upgrades.Options, rollback, finish bool) error {
	do, done := upgrades.Apply, "all nodes have the new version and emulate the old one; `kube-bootstrap cluster "+
		"upgrade --finish` completes the upgrade"
	switch {
	case rollback:
		do, done = upgrades.Rollback, "all nodes are back at the old version"
	case finish:
		do, done = upgrades.Finish, "the upgrade is complete"
	}
	runner, err := con.Begin()
	if err != nil {
		return err
	}
	started := time.Now()
	if err := localcluster.Drawn(runner, clusterAdvice, func(emit func(session.HostEvent)) error {
		return do(ctx, u, emit)
	}); err != nil {
		return err
	}
	con.Done(started, done)
	return nil
}

func clusterAdvice(error) string {
	return "run the same command again to finish; before --finish, --rollback returns to the old version"
}
