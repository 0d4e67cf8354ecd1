package localcluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/source"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func nodeCommand(con *console.Console) *cobra.Command {
	return command.Parent("node", "Nodes of a cluster whose hosts are containers",
		nodeAdd(con), nodeRemove(con), nodeStart(con), nodeStop(con), nodeSSH(con), nodeSCP(con), nodeIP(con),
		nodeInspect(con), nodeDockerEnv(con), nodeStatus(con), nodeList(con))
}

// addClusterFlags adds --cluster, and the flags of the engine and the file. They set the options.
func addClusterFlags(con *console.Console, c *cobra.Command) *cluster.Options {
	settings.AddFlags(c, config.Engine)
	c.Flags().String("cluster", "", "name of the cluster (default "+session.DefaultName+")")
	_ = c.RegisterFlagCompletionFunc("cluster", clusterListing.complete(con.Env))
	return optionsOf(con, c)
}

func nodeAdd(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "add",
		Short: "Add a node to a cluster",
		Long: `Add a node and wait until it is Ready. The default name is the role with the next
number. Flags set what differs from the other nodes, like an entry of nodes in the
configuration file.`,
		Example: `  kube-bootstrap node add
  kube-bootstrap node add --name db --node-label disk=ssd --node-taint dedicated=db:NoSchedule --node-memory 2Gi
  kube-bootstrap node add --role control-plane --name second`,
	}
	o := addClusterFlags(con, c)
	name := c.Flags().String("name", "", "name of the node (empty: by role and number)")
	source.AddFlags(c.Flags(), config.NodeAdd)
	role := c.Flags().String("role", "worker", "worker or control-plane")
	retain := c.Flags().Bool("retain", false, "leave what was made when something fails")
	limit := addLimit(c)
	_ = c.RegisterFlagCompletionFunc("role",
		cobra.FixedCompletions([]string{"worker", config.AliasControlPlane}, cobra.ShellCompDirectiveNoFileComp))
	var cfg config.Config
	c.PreRunE = func(c *cobra.Command, _ []string) (err error) {
		cfg, err = clusterOptions(con, c, o)
		return err
	}
	forMachines := addMachineFlags(con, c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if onMachines(o.Selection) {
			return addMachine(con, c, *o, *name, *forMachines)
		}
		if err := onlyMachines(c); err != nil {
			return err
		}
		spec, err := specOf(cfg, *role, *name)
		if err != nil {
			return err
		}
		if c.Flags().Changed("host-image") {
			spec.HostImage = cfg.HostImage
		}
		o.Retain = *retain
		var made string
		return Change(con, runAgain, func(emit func(session.HostEvent)) (err error) {
			made, err = cluster.AddNode(step.WithLimit(c.Context(), *limit), *o, spec, emit)
			return err
		}, func() string { return "node " + made + " is Ready" })
	}
	return c
}

func specOf(cfg config.Config, role, name string) (topology.Spec, error) {
	n := config.NodeEntry{Role: config.RoleWorker, Name: name, Settings: cfg}
	switch role {
	case config.RoleWorker:
	case config.RoleControlPlane, config.AliasControlPlane:
		n.Role = config.RoleControlPlane
	default:
		return topology.Spec{}, exit.Usage(fmt.Errorf("--role %q: must be worker or control-plane", role))
	}
	return nodeSpec(n), nil
}

func addLimit(c *cobra.Command) *time.Duration {
	return c.Flags().Duration("timeout", step.DefaultLimit,
		"how long to wait for the node, or for its pods to move away")
}

// Change draws a change of nodes, and prints its result at the end, or an advice after an error.
func Change(
	con *console.Console, advice func(error) string, do func(emit func(session.HostEvent)) error, done func() string,
) error {
	runner, err := con.Begin()
	if err != nil {
		return err
	}
	started := time.Now()
	if err := Drawn(runner, advice, do); err != nil {
		return err
	}
	con.Done(started, done())
	return nil
}

type nodeVerb struct {
	done  string // what the node is afterwards
	force bool   // the verb has --force
	do    func(ctx context.Context, o cluster.Options, name string, force bool, drain node.Drain,
		emit func(session.HostEvent)) error
	// to be confirmed; nil: none
	losses func(ctx context.Context, o cluster.Options, name string, force bool, drain node.Drain) ([]string, error)
}

func verbCommand(con *console.Console, c *cobra.Command, v nodeVerb) *cobra.Command {
	c.Args = nodeArg
	named := c.Flags().String("name", "", "the node, as for node add")
	_ = c.Flags().MarkHidden("name")
	c.ValidArgsFunction = command.FirstArg(nodeListing.complete(con.Env))
	o := addClusterFlags(con, c)
	limit := addLimit(c)
	forced, lose := new(bool), new(bool)
	if v.force {
		forced = c.Flags().Bool("force", false, "at once, without moving its pods away; also the last control plane")
		lose = c.Flags().Bool("lose-pods", false, "also delete pods that no controller makes again")
	}
	yes := console.AddYes(c, v.losses != nil)
	c.RunE = func(c *cobra.Command, args []string) error {
		name, drain := cmp.Or(strings.Join(args, ""), *named), node.Drain{Limit: *limit, LoseBare: *lose}
		if err := con.Confirm(c.Context(), *yes, func(ctx context.Context) ([]string, error) {
			return v.losses(ctx, *o, name, *forced, drain)
		}); err != nil {
			return err
		}
		return Change(con, runAgain, func(emit func(session.HostEvent)) error {
			return v.do(step.WithLimit(c.Context(), *limit), *o, name, *forced, drain, emit)
		}, func() string { return "node " + name + " is " + v.done })
	}
	return c
}

// nodeArg requires exactly one node, as an argument or by --name.
func nodeArg(c *cobra.Command, args []string) error {
	if c.Flags().Changed("name") {
		return cobra.NoArgs(c, args)
	}
	return cobra.ExactArgs(1)(c, args)
}

func nodeRemove(con *console.Console) *cobra.Command {
	return verbCommand(con, &cobra.Command{
		Use:     "remove NODE",
		Aliases: []string{"delete"},
		Short:   "Drain a node and remove it with all its data",
		Long: `Move a node's pods away, take it out of the cluster, and remove it with
everything that is on it: its object, its share of the network, its place in
etcd, its container and data. Disruption budgets are kept. A node of the same
name is a new one. What can be refused is refused before anything is changed;
when its pods do not move away in time, it takes pods again. The removal must be
confirmed on the terminal or with --yes.`,
		Example: "  kube-bootstrap node remove worker-2\n  kube-bootstrap node remove worker-2 --force --yes",
	}, nodeVerb{done: "removed", force: true, do: removeNode, losses: nodeLosses})
}

func nodeStop(con *console.Console) *cobra.Command {
	return verbCommand(con, &cobra.Command{
		Use:   "stop NODE",
		Short: "Drain a node and stop it",
		Long: `Drain a node and stop it. Disruption budgets are kept. What can
be refused is refused before anything is changed; when its pods do not move away
in time, it takes pods again. With --force it is switched off at once, as by its
power button.`,
		Example: "  kube-bootstrap node stop worker-1\n  kube-bootstrap node stop worker-1 --force",
	}, nodeVerb{done: "off", force: true, do: cluster.StopNode})
}

func nodeStart(con *console.Console) *cobra.Command {
	start := func(ctx context.Context, o cluster.Options, name string, _ bool, _ node.Drain,
		emit func(session.HostEvent)) error {
		return cluster.StartNode(ctx, o, name, emit)
	}
	return verbCommand(con, &cobra.Command{
		Use:     "start NODE",
		Short:   "Start a node and make it schedulable",
		Example: "  kube-bootstrap node start worker-1",
	}, nodeVerb{done: "Ready", do: start})
}

func nodeList(con *console.Console) *cobra.Command {
	return nodeListing.run(con, addClusterFlags, &cobra.Command{
		Use:     "list",
		Short:   "List the nodes of a cluster with their state on the engine",
		Example: "  kube-bootstrap node list\n  kube-bootstrap node list -o json",
	})
}

func nodeStatus(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "status [NODE]",
		Short: "Show the state of the steps of all nodes, or of one",
		Long: `Show the state of the steps of all nodes, or of one. The exit code is 5 when
something is missing or not Ready.`,
		Example:           "  kube-bootstrap node status\n  kube-bootstrap node status worker-1 -o yaml",
		ValidArgsFunction: command.FirstArg(nodeListing.complete(con.Env)),
	}
	o := addClusterFlags(con, c)
	format := output.AddFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return showCluster(c.Context(), con.Out, *format, *o, strings.Join(args, ""))
	}
	return c
}
