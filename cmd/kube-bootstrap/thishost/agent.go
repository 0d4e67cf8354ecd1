package thishost

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/upkeep"
)

// agentCommand is what the init system of a host runs.
func agentCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "agent", Hidden: true, Args: cobra.NoArgs,
		Short: "Run the agent of this host: balancer, approval of certificates, repairs",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := asRoot(); err != nil {
				return err
			}
			lock := func(ctx context.Context) (context.Context, func(), error) {
				return host.LockInBackground(ctx, lockPath)
			}
			return upkeep.Resident{Lock: lock, Log: con.Say}.Run(c.Context())
		},
	}
}

// keepCommand does at once what the agent of a control plane does soon.
func keepCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "keep", Hidden: true, Args: cobra.NoArgs,
		Short: "Turn on leader election for several control planes, and spread CoreDNS over the nodes",
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := openControlPlane()
			if err != nil {
				return err
			}
			return con.Do(c.Context(), "keep", func(ctx context.Context) error {
				release, err := host.Lock(ctx, lockPath)
				if err != nil {
					return err
				}
				defer release()
				return upkeep.Keep(ctx, h)
			})
		},
	}
}

// frontCommand runs the balancer in front of a cluster of containers.
func frontCommand() *cobra.Command {
	front := balancer.Front{}
	c := &cobra.Command{
		Use: "front", Hidden: true, Args: cobra.NoArgs,
		Short: "Forward a port to the control planes that are ready",
		RunE: func(c *cobra.Command, _ []string) error {
			process.SaveMemory()
			return front.Serve(c.Context())
		},
	}
	c.Flags().StringVar(&front.Name, "name", "", "name that resolves to all control planes")
	c.Flags().IntVar(&front.Port, "port", 0, "port of the API servers, and of the front")
	return c
}

// bootCommand is what the boot unit runs just before Docker starts.
func bootCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "boot", Hidden: true, Args: cobra.NoArgs,
		Short: "Update Docker's settings after a change of the flannel lease",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := asRoot(); err != nil {
				return err
			}
			release, err := host.LockUnless(c.Context(), lockPath, plan.RestartsDocker)
			if errors.Is(err, host.ErrLocked) {
				// That run restarts Docker, which waits for this unit: to wait
				// for the run here would be for ever. It sees to the same things.
				con.Say("another run is in progress and sees to Docker's settings")
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
