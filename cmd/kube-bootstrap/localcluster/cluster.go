// Package localcluster has the commands about clusters whose hosts are containers,
// and about their nodes.
package localcluster

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/source"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/dump"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Commands returns the commands "cluster", with further ones below it, and "node".
func Commands(con *console.Console, further ...*cobra.Command) []*cobra.Command {
	all := clusterCommand(con)
	all.AddCommand(further...)
	return []*cobra.Command{all, nodeCommand(con)}
}

func clusterCommand(con *console.Console) *cobra.Command {
	return command.Parent("cluster", "A cluster of containers on a Docker engine, or of machines over SSH",
		clusterUp(con), clusterHosts(con), clusterDown(con), clusterClean(con), clusterReup(con), clusterSnapshot(con),
		clusterStatusCommand(con), clusterKubeconfig(con), clusterKubectl(con), clusterList(con),
		clusterLoadImage(con), clusterDump(con), clusterE2E(con), clusterE2ESerial(con))
}

// AddNameFlags adds --name, and the flags of the engine and the file. They set the options.
func AddNameFlags(con *console.Console, c *cobra.Command) *cluster.Options {
	settings.AddFlags(c, config.Named)
	takeCluster(c)
	return optionsOf(con, c)
}

func optionsOf(con *console.Console, c *cobra.Command) *cluster.Options {
	o := &cluster.Options{}
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		_, err := clusterOptions(con, c, o)
		return err
	}
	return o
}

// takeCluster makes a command take --cluster for --name, as the commands about nodes do.
func takeCluster(c *cobra.Command) {
	known := c.Flags().GetNormalizeFunc()
	c.Flags().SetNormalizeFunc(func(flags *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "cluster" {
			return "name"
		}
		return known(flags, name)
	})
}

// clusterOptions fills o. It returns the settings, because the file may be the standard
// input, which can be read only once.
func clusterOptions(con *console.Console, c *cobra.Command, o *cluster.Options) (config.Config, error) {
	cfg, origins, err := settings.Load(con.Env, c.Flags(), config.Named, "")
	if err != nil {
		return cfg, err
	}
	c.SetContext(step.WithLimit(c.Context(), cfg.TimeoutForServices))
	if *o, err = toClusterOptions(cfg, origins); err != nil {
		return cfg, err
	}
	o.Selection = sessionOptions(cfg, con.Questions())
	// Where --cluster is another word for --name, the settings have its value.
	if of := c.Flags().Lookup("cluster"); of != nil && of.Name == "cluster" && of.Value.String() != "" {
		o.Name = of.Value.String()
	}
	return cfg, nil
}

func clusterUp(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "up",
		Short: "Create a cluster, or complete it",
		Long: `Create hosts, which are containers that behave like machines, and a cluster on
them, with the same commands that real hosts get. Run again, it creates what is
missing and leaves the rest alone. A cluster that ` + "`cluster down`" + ` switched off comes
back as it was.

An existing cluster keeps the settings that it was created with, even if the
defaults have changed. "cluster up" adds workers and applies the settings that
hosts can change. Any other different setting is an error, and nothing is changed.
With --recreate the cluster is removed and created again, with its settings and
the flags of this command. Saved snapshots stay, and the snapshot "` + snapshot.First + `" is replaced.
It lists what is removed and asks first; --yes confirms it where there is no terminal.

The admin's kubeconfig is merged into yours and becomes the current context, as
"cluster kubeconfig --merge" does. "cluster clean" removes it from there.

Without --bundle the images are those of the cache; else the official ones, where
they can be reached; else they are built from source, which takes minutes once.
What was pulled or built is kept in the cache. With --k8s-dir, those programs of
Kubernetes that differ from the release are built from a checkout.`,
		Example: `  kube-bootstrap cluster up
  kube-bootstrap cluster up --name second --workers 3 --dind-subnet 10.193.0.0/16 --flannel-backend host-gw
  kube-bootstrap cluster up -f cluster.yaml
  kube-bootstrap cluster up --k8s-dir ~/kubernetes`,
	}
	settings.AddFlags(c, config.ClusterUp)
	takeCluster(c)
	con.AddRecords(c.Flags())
	var flags upFlags
	c.Flags().BoolVar(&flags.recreate, "recreate", false,
		"remove the cluster with everything in it but its saved snapshots, and create it again")
	c.Flags().BoolVar(&flags.retain, "retain", false, "leave what was made when something fails")
	c.Flags().BoolVar(&flags.snapshot, "snapshot", true,
		"keep a snapshot called "+snapshot.First+" of the cluster when it is up for the first time")
	c.Flags().StringVar(&flags.kubeconfig, "kubeconfig", "", "kubeconfig to merge the cluster into; "+noKubeconfig+
		" for none (empty: the first file of $KUBECONFIG, or ~/.kube/config)")
	flags.yes = console.AddYes(c, true)
	flags.machines = addMachineFlags(con, c)
	flags.machines.addPlanFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error { return up(con, c, flags) }
	return c
}

func clusterStatusCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the hosts of a cluster, the state of their steps, and their nodes",
		Long: `Show the hosts of a cluster, the state of their steps, and their nodes. Nothing
is changed. The exit code is 5 when something is missing or not Ready.`,
		Example: "  kube-bootstrap cluster status\n  kube-bootstrap cluster status --name second -o json",
	}
	o := AddNameFlags(con, c)
	format := output.AddFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return showCluster(c.Context(), con.Out, *format, *o, "")
	}
	return c
}

func clusterDown(con *console.Console) *cobra.Command {
	return onCluster(con, "switch off cluster", cluster.Down, nil, &cobra.Command{
		Use:   "down",
		Short: "Stop the hosts of a cluster; up starts them again",
		Long: `Stop all hosts of a cluster at the same time. Their data is kept: the objects of
the cluster, its images and its volumes. ` + "`cluster up`" + ` with the same
settings brings it back; ` + "`cluster clean`" + ` removes it.`,
		Example: "  kube-bootstrap cluster down\n  kube-bootstrap cluster down --name second",
	})
}

func clusterClean(con *console.Console) *cobra.Command {
	c := onCluster(con, "remove cluster", clean, cleanLosses, &cobra.Command{
		Use:   "clean",
		Short: "Remove a cluster: its hosts, their data, and its snapshots",
		Long: `Remove a cluster: its hosts, their data, its snapshots, and its entries
in the kubeconfig that "cluster kubeconfig --merge" wrote. It lists the hosts and
snapshots and asks first; --yes confirms it where there is no terminal. With the
last cluster, it also removes the prepared disk and the host images that no
container uses, with which new clusters start sooner; --keep-images keeps them.`,
		Example: "  kube-bootstrap cluster clean\n  kube-bootstrap cluster clean --name second --yes",
	})
	source.AddFlags(c.Flags(), config.Clean)
	return c
}

// onCluster returns a command about a whole cluster. The user must confirm the losses, unless nil.
func onCluster(con *console.Console, what string, do func(context.Context, cluster.Options) error,
	losses func(context.Context, cluster.Options) ([]string, error), c *cobra.Command,
) *cobra.Command {
	o := AddNameFlags(con, c)
	yes := console.AddYes(c, losses != nil)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := con.Confirm(c.Context(), *yes,
			func(ctx context.Context) ([]string, error) { return losses(ctx, *o) }); err != nil {
			return err
		}
		return con.Do(c.Context(), step.IDOf(what), what+" "+o.Name, func(ctx context.Context) error {
			return exit.Firm(do(ctx, *o))
		})
	}
	return c
}

func clusterList(con *console.Console) *cobra.Command {
	return clusterListing.run(con, AddNameFlags, &cobra.Command{
		Use:     "list",
		Short:   "List the clusters that an engine runs, or that of a file of machines",
		Example: "  kube-bootstrap cluster list\n  kube-bootstrap cluster list -o json",
	})
}

func clusterLoadImage(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "load-image IMAGE...",
		Short: "Copy images into all nodes of a cluster",
		Long: `Copy images into all nodes that run, for pods and for plain containers: from the
engine that runs the nodes, from that of this machine if the nodes are machines,
or with --from from the Docker of a node, where ` + "`node docker-env`" + ` has built
them. A pod that uses such an image needs
"imagePullPolicy: IfNotPresent" or Never.`,
		Example: `  kube-bootstrap cluster load-image my/app:dev
  kube-bootstrap cluster load-image my/app:dev my/db:dev --name second
  kube-bootstrap cluster load-image my/tool:dev --from worker-1`,
	}
	o := AddNameFlags(con, c)
	from := c.Flags().String("from", "", "node whose Docker has the images (empty: the engine)")
	_ = c.RegisterFlagCompletionFunc("from", nodeListing.complete(con.Env))
	c.RunE = func(c *cobra.Command, args []string) error {
		return Change(con, runAgain, func(emit func(session.HostEvent)) error {
			return loadImage(c.Context(), o.Selection, *from, args, emit)
		}, func() string { return "in all nodes that run: " + strings.Join(args, ", ") })
	}
	return c
}

func clusterDump(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "dump DIR",
		Short: "Write the logs and states for a bug report into a directory",
		Long: `Write the logs and states for a bug report into a new directory, one below it for each node:
status, logs, network, and the cluster's objects, as "kube-bootstrap dump" does on a
host, and the output of your own containers and pods. What is known to be a key, a
token or a password is removed; read all files before you publish them.`,
		Example: "  kube-bootstrap cluster dump ./report",
	}
	o := AddNameFlags(con, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		sofar := func(error) string { return "what was collected so far is in " + args[0] }
		return Change(con, sofar, func(emit func(session.HostEvent)) error {
			err := tools.Dump(c.Context(), o.Selection, args[0], emit)
			if errors.Is(err, dump.ErrExists) {
				return exit.Usage(err)
			}
			return err
		}, func() string { return "what a bug report needs is in " + args[0] })
	}
	return c
}
