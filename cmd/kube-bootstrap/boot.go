package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
)

// bootCommand is what the boot unit runs just before Docker starts.
func (p *program) bootCommand() *cobra.Command {
	return &cobra.Command{
		Use: "boot", Hidden: true, Args: cobra.NoArgs,
		Short: "Bring Docker's settings in agreement with the flannel lease",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := asRoot(); err != nil {
				return err
			}
			release, err := host.LockUnless(c.Context(), lockPath, plan.RestartsDocker)
			if errors.Is(err, host.ErrLocked) {
				// That run restarts Docker, which waits for this unit: to wait
				// for the run here would be for ever. It sees to the same things.
				p.say("another run is in progress and sees to Docker's settings")
				return nil
			}
			if err != nil {
				return err
			}
			defer release()
			saved, err := local.ReadSaved(host.Files{})
			if err = errors.Join(err, saved.Lost); err != nil || saved.Role == "" {
				return err
			}
			h, err := local.Open(saved.Config)
			if err != nil {
				return err
			}
			return plan.Boot(c.Context(), h)
		},
	}
}
