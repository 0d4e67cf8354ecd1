package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// upFlags are those of `cluster up` that are no settings of the cluster.
type upFlags struct {
	retain, snapshot, recreate, yes bool
	kubeconfig                      string // file to merge the admin's kubeconfig into; empty: the user's own, "-": none
}

// up creates a cluster: first the bundle that the hosts load, then the hosts.
// It refuses what it can before it builds anything.
func (p *program) up(c *cobra.Command, flags upFlags) error {
	cfg, origins, err := p.load(c.Flags(), config.ClusterUp, "")
	if err != nil {
		return err
	}
	c.SetContext(step.WithLimit(c.Context(), cfg.TimeoutForServices))
	made, err := p.upRequest(c.Context(), cfg, origins, flags)
	if err != nil {
		return err
	}
	o := made.options
	if o.Bundle == "" {
		o.Bundle = made.keptBundle
	}
	var images step.Plan
	if o.Bundle == "" {
		if images, o.Bundle, err = p.imagesFor(c.Context(), made.settings); err != nil {
			return err
		}
	}
	runner, err := p.begin()
	if err != nil {
		return err
	}
	started := time.Now()
	if err := runner.Do(c.Context(), images); err != nil {
		return err
	}
	if o.Components, err = buildPrograms(c.Context(), runner, o, offline.Programs{Base: o.Bundle, K8sDir: made.checkout}); err != nil {
		return err
	}
	if err := p.raise(c.Context(), runner, o); err != nil {
		return err
	}
	p.endProgress()
	p.say(fmt.Sprintf("cluster %s is up, in %s", o.Name, progress.Took(time.Since(started))))
	return errors.Join(p.hint(c.Context(), o, flags.kubeconfig), p.mergeAfterUp(c, o, flags.kubeconfig))
}

// raise makes the hosts and the cluster. Before anything was begun, an error
// needs no advice on how to go on.
func (p *program) raise(ctx context.Context, runner *step.Runner, o cluster.Options) error {
	begun := false
	err := cluster.Up(ctx, o, drawn(runner, &begun))
	switch {
	case err == nil:
		return nil
	case begun:
		return &resumeError{err, adviceAfterUp(ctx, o, err)}
	}
	return &firmError{err}
}

// adviceAfterUp returns the next step for the user. A failed Up has removed
// what it created, unless parts existed before or the user set --retain.
func adviceAfterUp(ctx context.Context, o cluster.Options, err error) string {
	again, first := "run the same command again to finish", ""
	var refused *remote.Refused
	if errors.As(err, &refused) {
		ignorable := slices.DeleteFunc(slices.Clone(refused.Problems), func(p *step.Problem) bool { return p.Firm })
		if again, first = "run the same command again", "put this right, then "; len(ignorable) > 0 {
			first = "put this right, or add --ignore-preflight " + names(ignorable) + ", then "
		}
	}
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	if left, err := cluster.Exists(ctx, o.Options); err == nil && !left {
		return first + "run the same command again: nothing is left of this run"
	}
	return first + again + "; `kube-bootstrap cluster clean" + nameFlag(o.Options) + "` removes the remaining containers and volumes"
}

// drawn passes the events of a cluster on to the runner, each with its host, and notes
// that a step was started.
func drawn(runner *step.Runner, begun *bool) func(session.Event) {
	return func(e session.Event) {
		*begun = *begun || e.Kind == step.Started
		one := e.Event
		one.Step = strings.TrimPrefix(e.Host+": "+one.Step, ": ")
		runner.Emit(one)
	}
}

// hint prints the nodes and what the user may do with them.
func (p *program) hint(ctx context.Context, o cluster.Options, kubeconfig string) error {
	nodes, err := apiserver.Nodes(ctx, o.Options)
	if err != nil {
		return err
	}
	err = p.print("table", nodes, func(w io.Writer) {
		cells(w, "NODE", "STATUS", "VERSION", "ADDRESS")
		for _, n := range nodes {
			cells(w, n.Name, n.Status(), n.Version, n.Address)
		}
	})
	flag := nameFlag(o.Options)
	if kubeconfig == noKubeconfig {
		p.say("to use it with your kubectl: kube-bootstrap cluster kubeconfig" + flag + " --merge")
	}
	p.say("to use it: kube-bootstrap cluster kubectl" + flag + " get nodes")
	p.say("to switch it off: kube-bootstrap cluster down" + flag + "; to remove it: kube-bootstrap cluster clean" + flag)
	return err
}

// clusterFlag is nameFlag for the commands about nodes.
func clusterFlag(o session.Options) string {
	return strings.Replace(nameFlag(o), "--name", "--cluster", 1)
}

func nameFlag(o session.Options) string {
	if o.Name == session.DefaultName {
		return ""
	}
	return " --name " + o.Name
}
