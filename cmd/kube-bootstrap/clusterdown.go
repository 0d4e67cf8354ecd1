package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

func (p *program) clusterDown() *cobra.Command {
	return p.onCluster("switch off cluster", cluster.Down, nil, &cobra.Command{
		Use:   "down",
		Short: "Switch the hosts of a cluster off; up brings it back as it was",
		Long: `Switch the hosts of a cluster off, all at the same time. What is on them stays:
the cluster's objects, its images, its volumes. ` + "`cluster up`" + ` with the same
settings brings it back; ` + "`cluster clean`" + ` removes it.`,
		Example: "  kube-bootstrap cluster down\n  kube-bootstrap cluster down --name second",
	})
}

func (p *program) clusterClean() *cobra.Command {
	c := p.onCluster("remove cluster", cluster.Clean, cluster.CleanLosses, &cobra.Command{
		Use:   "clean",
		Short: "Remove a cluster: its hosts, all that is on them, and its snapshots",
		Long: `Remove a cluster: its hosts, all that is on them, its snapshots, and its entries
in the kubeconfig that "cluster kubeconfig --merge" wrote. It lists the hosts and
snapshots and asks first; --yes confirms it where there is no terminal.`,
		Example: "  kube-bootstrap cluster clean\n  kube-bootstrap cluster clean --name second --yes",
	})
	config.AddFlags(c.Flags(), config.Clean)
	return c
}

// onCluster returns a command that acts on a whole cluster. If losses is not
// nil, the user must confirm them.
func (p *program) onCluster(what string, do func(context.Context, cluster.Options) error,
	losses func(context.Context, cluster.Options) ([]string, error), c *cobra.Command,
) *cobra.Command {
	c.Args = cobra.NoArgs
	o := p.addNameFlags(c)
	yes := losses == nil
	if losses != nil {
		addYes(c, &yes)
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := p.clusterOptions(c, o); err != nil {
			return err
		}
		if err := p.confirm(c.Context(), yes, func(ctx context.Context) ([]string, error) { return losses(ctx, *o) }); err != nil {
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
