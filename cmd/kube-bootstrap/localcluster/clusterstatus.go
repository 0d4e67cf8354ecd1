package localcluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/thishost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
)

// clusterStatus is what `cluster status -o json` prints.
type clusterStatus struct {
	Name  string        `json:"name"`
	Ready bool          `json:"ready"`
	API   string        `json:"apiServer,omitempty"` // URL that does not depend on which control planes run
	Hosts []clusterHost `json:"hosts"`
	Error string        `json:"error,omitempty"` // why there are no nodes

	Registry *cluster.LocalRegistry `json:"localRegistry,omitempty"`
}

type clusterHost struct {
	remote.HostStatus
	Node *apiserver.NodeStatus `json:"node,omitempty"`
}

func showCluster(ctx context.Context, out io.Writer, format output.Format, o cluster.Options, name string) error {
	hosts, err := cluster.Status(ctx, o.Selection, name)
	if err != nil {
		return exit.Firm(err)
	}
	s := clusterStatus{Name: o.Name, Ready: len(hosts) > 0, Hosts: []clusterHost{}}
	nodes := map[string]*apiserver.NodeStatus{}
	if len(hosts) > 0 {
		found, err := apiserver.Nodes(ctx, o.Selection)
		for _, n := range found {
			nodes[n.Name] = &n
		}
		if err != nil {
			s.Error = err.Error()
		} else if s.API, err = apiserver.URL(ctx, o.Selection); err != nil {
			s.Error = err.Error()
		}
	}
	if s.Registry, err = cluster.RegistryStatus(ctx, o.Selection); err != nil {
		return exit.Firm(err)
	}
	s.Ready = s.Ready && (s.Registry == nil || s.Registry.Running)
	for _, h := range hosts {
		one := clusterHost{h, nodes[h.Name]}
		s.Ready = s.Ready && one.ready()
		s.Hosts = append(s.Hosts, one)
	}
	if err := format.Print(out, "ClusterStatus", s, s.print); err != nil {
		return err
	}
	if !s.Ready {
		return exit.ErrNotUpToDate
	}
	return nil
}

func (s clusterStatus) print(w io.Writer) {
	output.Row(w, "HOST", "ADDRESS", "STATE", "STEPS", "NODE", "VERSION")
	for _, h := range s.Hosts {
		node := cmp.Or(h.Node, &apiserver.NodeStatus{})
		output.Row(w, h.Name, addresses.Text(h.Addr), h.State, h.steps(), node.Status(), node.Version)
	}
	if s.API != "" {
		fmt.Fprintln(w, "\nAPI server: "+s.API+", which leads to any control plane that is ready")
	}
	switch {
	case s.Registry == nil:
	case s.Registry.Running:
		fmt.Fprintln(w, "local registry: "+s.Registry.Address)
	default:
		fmt.Fprintln(w, "the local registry "+s.Registry.Address+", container "+s.Registry.Container+", does not run")
	}
	if s.Error != "" {
		fmt.Fprintln(w, "no answer about the nodes: "+s.Error)
	}
	if !s.Ready {
		fmt.Fprintln(w, cmp.Or(s.quorum(), s.expiry(), s.repair()))
	}
}

func (s clusterStatus) quorum() string {
	for _, h := range s.Hosts {
		if text := h.report().Quorum; text != "" {
			return text
		}
	}
	return ""
}

func (s clusterStatus) expiry() string {
	var lines []string
	for _, h := range s.Hosts {
		if text := h.report().CertificateExpiry; text != "" {
			lines = append(lines, h.Name+": "+text)
		}
	}
	return strings.Join(lines, "\n")
}

// repair returns the command that repairs the cluster, or starts a node if only some are off.
func (s clusterStatus) repair() string {
	o := session.Selection{Name: s.Name}
	off := slices.DeleteFunc(slices.Clone(s.Hosts), func(h clusterHost) bool { return h.State == "running" })
	if len(off) == 0 || len(off) == len(s.Hosts) {
		return "run `kube-bootstrap cluster up" + nameFlag(o) + "` to repair it"
	}
	return "run `kube-bootstrap node start " + off[0].Name + clusterFlag(o) +
		"` to switch that node on, or `kube-bootstrap cluster up" + nameFlag(o) + "` to repair all"
}

// report is what the kube-bootstrap on the host says of itself.
func (h clusterHost) report() (s thishost.Status) {
	_ = json.Unmarshal(h.Report, &s) // no report: nothing up to date
	return s
}

func (h clusterHost) ready() bool {
	return h.Node != nil && h.Node.Ready && h.report().UpToDate
}

// steps lists the missing and unknown steps. If there are none, it returns the number of steps.
func (h clusterHost) steps() string {
	report := h.report()
	steps := report.ByState()
	var texts []string
	for _, state := range []string{"missing", "unknown"} {
		if names := steps[state]; len(names) > 0 {
			texts = append(texts, state+": "+strings.Join(names, ", "))
		}
	}
	switch {
	case len(texts) > 0:
		return strings.Join(texts, "; ")
	case report.UpToDate:
		return fmt.Sprintf("%d up to date", len(report.Steps))
	}
	return cmp.Or(progress.FirstLine(h.Error), "none")
}

// listing is what a command lists of the clusters of an engine, and what completion offers.
type listing[T any] struct {
	kind    string
	all     func(context.Context, session.Selection) ([]T, error)
	columns []output.Column[T] // the first is the name
}

var (
	clusterListing = listing[cluster.Summary]{"Cluster", cluster.List, []output.Column[cluster.Summary]{
		{Head: "CLUSTER", Cell: func(s cluster.Summary) string { return s.Name }},
		{Head: "MASTERS", Cell: func(s cluster.Summary) string { return strconv.Itoa(s.ControlPlanes) }},
		{Head: "WORKERS", Cell: func(s cluster.Summary) string { return strconv.Itoa(s.Workers) }},
		{Head: "RUNNING", Cell: func(s cluster.Summary) string { return strconv.Itoa(s.Running) }},
		{Head: "SUBNET", Cell: func(s cluster.Summary) string { return s.Subnet }},
	}}
	nodeListing = listing[cluster.NodeSummary]{"Node", cluster.NodeNames, []output.Column[cluster.NodeSummary]{
		{Head: "NODE", Cell: func(n cluster.NodeSummary) string { return n.Name }},
		{Head: "ROLE", Cell: func(n cluster.NodeSummary) string { return n.Role }},
		{Head: "ADDRESS", Cell: func(n cluster.NodeSummary) string { return addresses.Text(n.Addr) }},
		{Head: "STATE", Cell: func(n cluster.NodeSummary) string { return n.State }},
		{Head: "HOST IMAGE", Cell: func(n cluster.NodeSummary) string { return n.Image }, Wide: true},
	}}
	snapshotListing = listing[snapshot.Snapshot]{"Snapshot", snapshot.List, []output.Column[snapshot.Snapshot]{
		{Head: "SNAPSHOT", Cell: func(s snapshot.Snapshot) string { return s.Name }},
		{Head: "MADE", Cell: func(s snapshot.Snapshot) string { return s.Made.Local().Format(time.DateTime) }},
		{Head: "HOSTS", Cell: func(s snapshot.Snapshot) string { return strconv.Itoa(len(s.Hosts)) }},
		{Head: "VERSION", Cell: func(s snapshot.Snapshot) string { return s.Kubernetes }},
		{Head: "SIZE", Cell: func(s snapshot.Snapshot) string { return progress.Amount(s.Bytes, 0) }},
		{Head: "NODES", Cell: func(s snapshot.Snapshot) string { return strings.Join(s.Hosts, ",") }, Wide: true},
	}}
)

// run returns c as the command that prints the list. addFlags adds the flags that select the cluster.
func (l listing[T]) run(con *console.Console, addFlags func(*console.Console, *cobra.Command) *cluster.Options,
	c *cobra.Command,
) *cobra.Command {
	o := addFlags(con, c)
	return output.ListCommand(c, con.Out, l.kind, l.columns, func(ctx context.Context) ([]T, error) {
		all, err := l.all(ctx, o.Selection)
		return all, exit.Firm(err)
	})
}

// complete offers the names of all; none if the engine does not answer.
func (l listing[T]) complete(env func(string) string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		var o cluster.Options
		if _, err := clusterOptions(&console.Console{Env: env}, c, &o); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, _ := l.all(c.Context(), o.Selection)
		for _, one := range all {
			names = append(names, l.columns[0].Cell(one))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteNames offers the names of the clusters that an engine runs.
func CompleteNames(env func(string) string) cobra.CompletionFunc { return clusterListing.complete(env) }
