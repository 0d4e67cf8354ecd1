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
		Short: "Take a host that died for good out of its cluster",
		Long: `Take a host that died for good out of its cluster: its user out of etcd, so that
flannel's certificate on it opens nothing, its subnet out of flannel's network,
and its node out of the list; a control plane also out of etcd, which
counts it as a member that is down. To be run on a control plane that lives. A
host that is alive leaves by "kube-bootstrap turndown".`,
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
		Short: "Give another node of the cluster the labels and taints of its settings",
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
