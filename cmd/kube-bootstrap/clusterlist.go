package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
)

func (p *program) clusterList() *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the clusters that an engine runs",
		Example: "  kube-bootstrap cluster list\n  kube-bootstrap cluster list -o json",
	}
	return clusterListing.run(p, c, p.addNameFlags(c))
}

func (p *program) clusterLoadImage() *cobra.Command {
	c := &cobra.Command{
		Use:   "load-image IMAGE...",
		Short: "Copy images into all nodes of a cluster",
		Long: `Copy images into all nodes that run, for pods and for plain containers: from the
engine that runs the nodes, or with --from from the Docker of a node, where
` + "`node docker-env`" + ` has built them. A pod that uses such an image needs
"imagePullPolicy: IfNotPresent" or Never.`,
		Example: `  kube-bootstrap cluster load-image my/app:dev
  kube-bootstrap cluster load-image my/app:dev my/db:dev --name second
  kube-bootstrap cluster load-image my/tool:dev --from worker-1`,
		Args: cobra.MinimumNArgs(1),
	}
	o := p.addNameFlags(c)
	from := c.Flags().String("from", "", "node whose Docker has the images (empty: the engine that runs the nodes)")
	_ = c.RegisterFlagCompletionFunc("from", nodeListing.complete(p))
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := p.clusterOptions(c, o); err != nil {
			return err
		}
		return p.change(c.Context(), func(ctx context.Context, emit func(session.Event)) error {
			return tools.LoadImage(ctx, o.Options, *from, args, emit)
		}, func() string { return "in all nodes that run: " + strings.Join(args, ", ") })
	}
	return c
}

func (p *program) clusterDump() *cobra.Command {
	c := &cobra.Command{
		Use:   "dump DIR",
		Short: "Write what a bug report needs into a directory",
		Long: `Write what a bug report needs into a directory, one below it for each node:
status, logs, network, and the cluster's objects. Secrets are left out, and
what looks like a key, a token or a password is blotted out.`,
		Example: "  kube-bootstrap cluster dump ./report",
		Args:    cobra.ExactArgs(1),
	}
	o := p.addNameFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := p.clusterOptions(c, o); err != nil {
			return err
		}
		return p.change(c.Context(), func(ctx context.Context, emit func(session.Event)) error {
			return tools.Dump(ctx, o.Options, args[0], emit)
		}, func() string { return "what a bug report needs is in " + args[0] })
	}
	return c
}
