package main

import (
	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
)

// approveCommand is what a timer runs on a master, for nodes that join.
func (p *program) approveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "approve", Hidden: true, Args: cobra.NoArgs,
		Short: "Approve the serving certificates that kubelets of this cluster ask for",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := asRoot(); err != nil {
				return err
			}
			saved, err := plan.ReadSaved(host.Files{})
			if err != nil || saved.Role != plan.Master {
				return err
			}
			h, err := plan.Open(saved.Config)
			if err != nil {
				return err
			}
			return h.Approve(c.Context())
		},
	}
}
