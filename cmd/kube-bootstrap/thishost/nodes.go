package thishost

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
)

func forgetCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "forget NAME",
		Short: "Remove a host that is lost from its cluster",
		Long: `Remove a host that is lost from its cluster: its user of etcd, so that its
certificate for flannel becomes useless, its subnet, and its node. A control
plane is also removed from the members of etcd. Run this on a control plane that
works. On a host that still works, run "kube-bootstrap turndown" instead.`,
		Example: "  kube-bootstrap forget node-3",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := openControlPlane()
			if err != nil {
				return err
			}
			return con.Do(c.Context(), "forget "+args[0], func(ctx context.Context) error {
				return exit.Firm(membership.Forget(ctx, h, args[0]))
			})
		},
	}
}

// markCommand is the command that `cluster up` runs on a control plane, with
// the labels and taints of a node from its file.
func markCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use: "mark NODE", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Set the labels and taints of another node from its settings",
	}
	labels := c.Flags().StringSlice("node-label", nil, "labels of the node: KEY=VALUE")
	taints := c.Flags().StringSlice("node-taint", nil, "taints of the node: KEY=VALUE:EFFECT")
	c.RunE = func(c *cobra.Command, args []string) error {
		h, err := openControlPlane()
		if err != nil {
			return err
		}
		return con.Do(c.Context(), "label node "+args[0], func(ctx context.Context) error { return membership.Mark(ctx, h, args[0], *labels, *taints) })
	}
	return c
}

func openControlPlane() (*local.Host, error) {
	if err := asRoot(); err != nil {
		return nil, err
	}
	saved, err := local.ReadSaved(host.Files{})
	if err = errors.Join(err, saved.Lost); err != nil {
		return nil, err
	}
	if saved.Role != config.RoleMaster {
		return nil, noControlPlane("`kube-bootstrap master` was not run on it")
	}
	return local.Open(saved.Config)
}
