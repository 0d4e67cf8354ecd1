package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/upkeep"
)

// agentCommand is what the init system of a host runs.
func (p *program) agentCommand() *cobra.Command {
	return &cobra.Command{
		Use: "agent", Hidden: true, Args: cobra.NoArgs,
		Short: "Balance, approve and repair, as long as this host is part of a cluster",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := asRoot(); err != nil {
				return err
			}
			lock := func(ctx context.Context) (context.Context, func(), error) {
				return host.LockInBackground(ctx, lockPath)
			}
			return upkeep.Resident{Lock: lock, Log: p.say}.Run(c.Context())
		},
	}
}

// keepCommand does at once what the agent of a control plane does soon.
func (p *program) keepCommand() *cobra.Command {
	return &cobra.Command{
		Use: "keep", Hidden: true, Args: cobra.NoArgs,
		Short: "Share the work with other control planes, and spread CoreDNS over the nodes",
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := openControlPlane()
			if err != nil {
				return err
			}
			return p.do(c.Context(), "keep", func(ctx context.Context) error {
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
func (p *program) frontCommand() *cobra.Command {
	front := balancer.Front{}
	c := &cobra.Command{
		Use: "front", Hidden: true, Args: cobra.NoArgs,
		Short: "Lead a port to control planes that are ready",
		RunE: func(c *cobra.Command, _ []string) error {
			host.SaveMemory()
			return front.Serve(c.Context())
		},
	}
	c.Flags().StringVar(&front.Name, "name", "", "name that resolves to all control planes")
	c.Flags().IntVar(&front.Port, "port", 0, "port of the API servers, and of the front")
	return c
}
