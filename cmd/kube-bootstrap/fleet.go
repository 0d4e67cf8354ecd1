package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

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
	cfg, origins, err := p.load(c.Flags(), config.Fleet, "")
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
	p.say(fmt.Sprintf("cluster %s is up, in %s", o.Name, took(time.Since(started))))
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

// drawn draws the events of a fleet, each with the host it is of, and notes
// that something was begun.
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

// fleetStatus is what `cluster status -o json` prints.
type fleetStatus struct {
	Name  string      `json:"name"`
	Ready bool        `json:"ready"`
	API   string      `json:"apiServer,omitempty"` // URL that does not depend on which control planes run
	Hosts []fleetHost `json:"hosts"`
	Error string      `json:"error,omitempty"` // why there are no nodes
}

type fleetHost struct {
	remote.HostStatus
	Node *apiserver.Node `json:"node,omitempty"`
}

func (p *program) showFleet(ctx context.Context, format string, o cluster.Options, only ...string) error {
	hosts, err := cluster.Status(ctx, o.Options, only...)
	if err != nil {
		return &firmError{err}
	}
	s := fleetStatus{Name: o.Name, Ready: len(hosts) > 0, Hosts: []fleetHost{}}
	nodes := map[string]*apiserver.Node{}
	if len(hosts) > 0 {
		found, err := apiserver.Nodes(ctx, o.Options)
		for _, n := range found {
			nodes[n.Name] = &n
		}
		if err != nil {
			s.Error = err.Error()
		} else if s.API, err = apiserver.URL(ctx, o.Options); err != nil {
			s.Error = err.Error()
		}
	}
	for _, h := range hosts {
		one := fleetHost{h, nodes[h.Name]}
		s.Ready = s.Ready && one.ready()
		s.Hosts = append(s.Hosts, one)
	}
	if err := p.print(format, s, s.print); err != nil {
		return err
	}
	if !s.Ready {
		return errNotInPlace
	}
	return nil
}

func (s fleetStatus) print(w io.Writer) {
	cells(w, "HOST", "ADDRESS", "STATE", "STEPS", "NODE", "VERSION")
	for _, h := range s.Hosts {
		node := apiserver.Node{}
		if h.Node != nil {
			node = *h.Node
		}
		cells(w, h.Name, h.Addr.String(), h.State, h.steps(), node.Status(), node.Version)
	}
	if s.API != "" {
		fmt.Fprintln(w, "\nAPI server: "+s.API+", which leads to any control plane that is ready")
	}
	if s.Error != "" {
		fmt.Fprintln(w, "no answer about the nodes: "+s.Error)
	}
	switch {
	case s.Ready:
	case s.quorum() != "":
		fmt.Fprintln(w, s.quorum())
	case s.expiry() != "":
		fmt.Fprintln(w, s.expiry())
	default:
		fmt.Fprintln(w, s.repair())
	}
}

// quorum returns the report of a control plane about a lost etcd quorum.
func (s fleetStatus) quorum() string {
	for _, h := range s.Hosts {
		if text := h.report().Quorum; text != "" {
			return text
		}
	}
	return ""
}

// expiry returns the reports of hosts whose certificates expire soon.
func (s fleetStatus) expiry() string {
	var lines []string
	for _, h := range s.Hosts {
		if text := h.report().CertificateExpiry; text != "" {
			lines = append(lines, h.Name+": "+text)
		}
	}
	return strings.Join(lines, "\n")
}

// repair returns the command that repairs the cluster. If only some nodes are
// off, it suggests to start one of them.
func (s fleetStatus) repair() string {
	o := session.Options{Name: s.Name}
	off := slices.DeleteFunc(slices.Clone(s.Hosts), func(h fleetHost) bool { return h.State == "running" })
	if len(off) == 0 || len(off) == len(s.Hosts) {
		return "run `kube-bootstrap cluster up" + nameFlag(o) + "` to repair it"
	}
	return "run `kube-bootstrap node start " + off[0].Name + clusterFlag(o) + "` to switch that node on, or `kube-bootstrap cluster up" + nameFlag(o) + "` to repair all"
}

// report is what the kube-bootstrap on the host says of itself.
func (h fleetHost) report() (s hostStatus) {
	_ = json.Unmarshal(h.Report, &s) // no report: nothing in place
	return s
}

func (h fleetHost) ready() bool {
	return h.Node != nil && h.Node.Ready && h.report().InPlace
}

// steps says in a few words what is in place. A step that got no answer is not
// known to be missing.
func (h fleetHost) steps() string {
	report := h.report()
	var missing, unknown []string
	for _, one := range report.Steps {
		switch {
		case one.Error != "":
			unknown = append(unknown, one.Step)
		case !one.InPlace:
			missing = append(missing, one.Step)
		}
	}
	var texts []string
	if len(missing) > 0 {
		texts = append(texts, "missing: "+strings.Join(missing, ", "))
	}
	if len(unknown) > 0 {
		texts = append(texts, "unknown: "+strings.Join(unknown, ", "))
	}
	switch {
	case len(texts) > 0:
		return strings.Join(texts, "; ")
	case report.InPlace:
		return fmt.Sprintf("%d in place", len(report.Steps))
	}
	return cmp.Or(firstLine(h.Error), "none")
}
