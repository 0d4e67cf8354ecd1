package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
)

func (p *program) forgetCommand() *cobra.Command {
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
		RunE:    func(c *cobra.Command, args []string) error { return p.forget(c.Context(), args[0]) },
	}
}

func (p *program) forget(ctx context.Context, name string) error {
	h, err := openControlPlane()
	if err != nil {
		return err
	}
	return p.do(ctx, "forget "+name, func(ctx context.Context) error {
		if err := membership.Forget(ctx, h, name); err != nil {
			return &firmError{err}
		}
		return nil
	})
}
