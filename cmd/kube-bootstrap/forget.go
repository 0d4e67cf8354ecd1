package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func (p *program) forgetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "forget NAME",
		Short: "Take a host that died for good out of its cluster",
		Long: `Take a host that died for good out of its cluster: its subnet out of flannel's
network, and its node out of the list; a control plane also out of etcd, which
counts it as a member that is down. To be run on a control plane that lives. A
host that is alive leaves by "kube-bootstrap turndown".`,
		Example: "  kube-bootstrap forget node-3",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return p.forget(c.Context(), args[0]) },
	}
}

func (p *program) forget(ctx context.Context, name string) error {
	if err := asRoot(); err != nil {
		return err
	}
	saved, err := plan.ReadSaved(host.Files{})
	if err != nil {
		return err
	}
	if saved.Role != config.RoleMaster {
		return &step.Problem{Name: "role", Text: "this host is no control plane", Remedy: "run it on one"}
	}
	h, err := plan.Open(saved.Config)
	if err != nil {
		return err
	}
	return p.do(ctx, "forget "+name, func(ctx context.Context) error {
		if err := h.Forget(ctx, name); err != nil {
			return &firmError{err}
		}
		return nil
	})
}
