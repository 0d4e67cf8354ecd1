package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
)

// approveCommand is what a timer runs on a master, for nodes that join.
func (p *program) approveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "approve", Hidden: true, Args: cobra.NoArgs,
		Short: "Approve serving certificates that kubelets ask for, and share the work with other control planes",
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
			return errors.Join(h.Approve(c.Context()), keep(c.Context(), h))
		},
	}
}

// keep leaves it to a run that is in progress: the timer comes again.
func keep(ctx context.Context, h *plan.Host) error {
	release, err := host.LockInBackground(lockPath)
	if errors.Is(err, host.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	return h.Keep(ctx)
}
