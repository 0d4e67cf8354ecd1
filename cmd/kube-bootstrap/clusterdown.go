package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

func (p *program) clusterDown() *cobra.Command {
	return p.onFleet("switch off cluster", cluster.Down, &cobra.Command{
		Use:   "down",
		Short: "Switch the hosts of a cluster off; up brings it back as it was",
		Long: `Switch the hosts of a cluster off, all at the same time. What is on them stays:
the cluster's objects, its images, its volumes. ` + "`cluster up`" + ` with the same
settings brings it back; ` + "`cluster clean`" + ` removes it.`,
		Example: "  kube-bootstrap cluster down\n  kube-bootstrap cluster down --name second",
	})
}

func (p *program) clusterClean() *cobra.Command {
	return p.onFleet("remove cluster", cluster.Clean, &cobra.Command{
		Use:     "clean",
		Short:   "Remove a cluster: its hosts, all that is on them, and its snapshots",
		Example: "  kube-bootstrap cluster clean\n  kube-bootstrap cluster clean --name second",
	})
}

// onFleet is a command that does one thing to a whole fleet.
func (p *program) onFleet(what string, do func(context.Context, cluster.Options) error, c *cobra.Command) *cobra.Command {
	c.Args = cobra.NoArgs
	o := p.addFleet(c)
	if c.Name() == "clean" {
		config.AddFlags(c.Flags(), config.Clean)
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := p.fleet(c, o); err != nil {
			return err
		}
		return p.do(c.Context(), what+" "+o.Name, func(ctx context.Context) error {
			if err := do(ctx, *o); err != nil {
				return &firmError{err}
			}
			return nil
		})
	}
	return c
}
