package localcluster

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/bundles"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/localregistry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// upFlags are the flags of `cluster up` that are no settings of the cluster.
type upFlags struct {
	retain, snapshot, recreate bool
	yes                        *bool
	machines                   *machineFlags
	kubeconfig                 string // file to merge the admin's kubeconfig into; empty: the user's own, "-": none
}

// up creates a cluster: first the bundle that the hosts load, then the hosts.
// It refuses what it can before it builds anything.
func up(con *console.Console, c *cobra.Command, flags upFlags) error {
	cfg, origins, err := settings.Load(con.Env, c.Flags(), config.ClusterUp, "")
	if err != nil {
		return err
	}
	if hasMachines(cfg) {
		return upMachines(con, c, cfg, origins, flags)
	}
	if err := onlyMachines(c); err != nil {
		return err
	}
	c.SetContext(step.WithLimit(c.Context(), cfg.TimeoutForServices))
	made, err := checkRequest(c.Context(), con, cfg, origins, flags)
	if err != nil {
		return err
	}
	defer made.release()
	runner, err := con.Begin()
	if err != nil {
		return err
	}
	started := time.Now()
	o := made.options
	if o.Bundle = cmp.Or(o.Bundle, made.keptBundle); o.Bundle == "" {
		if o.Bundle, err = made.makeImages(c.Context(), con, runner, flags.kubeconfig); err != nil {
			return err
		}
	}
	if err := made.create(c.Context(), runner, o); err != nil {
		return err
	}
	con.Done(started, "cluster "+o.Name+" is up")
	return errors.Join(hint(c.Context(), con, o, flags.kubeconfig),
		mergeKubeconfig(c.Context(), con, o, flags.kubeconfig))
}

// makeImages makes the bundle and returns its path. If programs of addons must be compiled for it,
// the cluster is created before that, without addons.
func (r upRequest) makeImages(
	ctx context.Context, con *console.Console, runner *step.Runner, kubeconfig string,
) (string, error) {
	images, err := bundles.ForHosts(ctx, con.Say, r.settings)
	if err == nil && images.Base != nil && r.withoutAddons != nil {
		err = r.createWithoutAddons(ctx, con, runner, *images.Base, kubeconfig)
	}
	if err == nil {
		err = runner.Do(ctx, images.Plan)
	}
	return images.Bundle, err
}

func (r upRequest) createWithoutAddons(
	ctx context.Context, con *console.Console, runner *step.Runner, images bundles.Images, kubeconfig string,
) error {
	if err := runner.Do(ctx, images.Plan); err != nil {
		return err
	}
	o := *r.withoutAddons
	o.Bundle = images.Bundle
	if err := r.create(ctx, runner, o); err != nil {
		return err
	}
	con.Say("cluster " + o.Name + " is up and can be used; its addons follow as soon as their images are built")
	return mergeKubeconfig(ctx, con, o, kubeconfig)
}

// create builds what a checkout has changed, and creates the cluster.
func (r upRequest) create(ctx context.Context, runner *step.Runner, o cluster.Options) (err error) {
	if o.Components, err = buildPrograms(ctx, runner, o,
		offline.ProgramOptions{Base: o.Bundle, K8sDir: r.checkout}); err != nil {
		return err
	}
	advice := func(err error) string { return adviceAfterUp(ctx, o, err) }
	return Drawn(runner, advice, func(emit func(session.HostEvent)) error { return cluster.Up(ctx, o, emit) })
}

// adviceAfterUp returns the next step for the user. A failed Up has removed
// what it created, unless parts existed before or the user set --retain.
func adviceAfterUp(ctx context.Context, o cluster.Options, err error) string {
	again, first := exit.RunAgain, ""
	if refused, ok := errors.AsType[*remote.Refused](err); ok {
		again, first = "run the same command again", "put this right, then "
		if ignorable := exit.Ignorable(refused.Problems); ignorable != "" {
			first = "put this right, or add --ignore-preflight " + ignorable + ", then "
		}
	}
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	if left, err := cluster.Exists(ctx, o.Selection); err == nil && !left {
		return first + "run the same command again: nothing is left of this run"
	}
	return first + again + "; `kube-bootstrap cluster clean" + nameFlag(o.Selection) +
		"` removes the remaining containers and volumes"
}

// Drawn does something to a cluster and passes its events to the runner with their hosts. Before
// a step was started, an error needs no advice on how to go on.
func Drawn(runner *step.Runner, advice func(error) string, do func(emit func(session.HostEvent)) error) error {
	begun := false
	err := do(func(e session.HostEvent) {
		begun = begun || e.Kind == step.Started
		one := e.Event
		one.Step = strings.TrimPrefix(e.Host+": "+one.Step, ": ")
		runner.Emit(one)
	})
	if err != nil && begun {
		return exit.Resume(err, advice(err))
	}
	return exit.Firm(err)
}

func runAgain(error) string { return exit.RunAgain }

// hint prints the nodes and what the user may do with them.
func hint(ctx context.Context, con *console.Console, o cluster.Options, kubeconfig string) error {
	nodes, err := apiserver.Nodes(ctx, o.Selection)
	if err != nil {
		return err
	}
	err = printNodes(con.Out, nodes)
	flag := nameFlag(o.Selection)
	if kubeconfig == noKubeconfig {
		con.Say("to use it with your kubectl: kube-bootstrap cluster kubeconfig" + flag + " --merge")
	}
	if o.Registry.Port != 0 {
		con.Say("to give it images: docker push " + localregistry.Name(o.Registry.Port) + "/NAME:TAG")
	}
	con.Say("to use it: kube-bootstrap cluster kubectl" + flag + " get nodes")
	con.Say("to switch it off: kube-bootstrap cluster down" + flag + "; to remove it: kube-bootstrap cluster clean" +
		flag)
	return err
}

func printNodes(out io.Writer, nodes []apiserver.NodeStatus) error {
	return output.Table.Print(out, "Node", nodes, func(w io.Writer) {
		output.Row(w, "NODE", "STATUS", "VERSION", "ADDRESS")
		for _, n := range nodes {
			output.Row(w, n.Name, n.Status(), n.Version, n.Address)
		}
	})
}

// clusterFlag is nameFlag for the commands about nodes.
func clusterFlag(o session.Selection) string {
	return strings.Replace(nameFlag(o), "--name", "--cluster", 1)
}

func nameFlag(o session.Selection) string {
	if o.Name == session.DefaultName {
		return ""
	}
	return " --name " + o.Name
}
