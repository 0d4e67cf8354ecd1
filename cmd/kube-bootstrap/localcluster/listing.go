package localcluster

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/snapshot"
)

// listing is what a command lists of the clusters of an engine, and what completion offers.
type listing[T any] struct {
	kind    string
	all     func(context.Context, session.Options) ([]T, error)
	columns []output.Column[T] // the first is the name
}

var (
	clusterListing = listing[cluster.Summary]{"Cluster", cluster.List, []output.Column[cluster.Summary]{
		{Head: "CLUSTER", Cell: func(s cluster.Summary) string { return s.Name }},
		{Head: "MASTERS", Cell: func(s cluster.Summary) string { return number(s.Masters) }},
		{Head: "WORKERS", Cell: func(s cluster.Summary) string { return number(s.Workers) }},
		{Head: "RUNNING", Cell: func(s cluster.Summary) string { return number(s.Running) }},
		{Head: "SUBNET", Cell: func(s cluster.Summary) string { return s.Subnet }},
	}}
	nodeListing = listing[cluster.HostNode]{"Node", cluster.NodeNames, []output.Column[cluster.HostNode]{
		{Head: "NODE", Cell: func(n cluster.HostNode) string { return n.Name }},
		{Head: "ROLE", Cell: func(n cluster.HostNode) string { return string(n.Role) }},
		{Head: "ADDRESS", Cell: func(n cluster.HostNode) string { return n.Addr.String() }},
		{Head: "STATE", Cell: func(n cluster.HostNode) string { return n.State }},
		{Head: "HOST IMAGE", Cell: func(n cluster.HostNode) string { return n.Image }, Wide: true},
	}}
	snapshotListing = listing[snapshot.Snapshot]{"Snapshot", snapshot.List, []output.Column[snapshot.Snapshot]{
		{Head: "SNAPSHOT", Cell: func(s snapshot.Snapshot) string { return s.Name }},
		{Head: "MADE", Cell: func(s snapshot.Snapshot) string { return s.Made.Local().Format(time.DateTime) }},
		{Head: "HOSTS", Cell: func(s snapshot.Snapshot) string { return number(len(s.Hosts)) }},
		{Head: "VERSION", Cell: func(s snapshot.Snapshot) string { return s.Kubernetes }},
		{Head: "SIZE", Cell: func(s snapshot.Snapshot) string { return progress.Amount(s.Bytes, 0) }},
		{Head: "NODES", Cell: func(s snapshot.Snapshot) string { return strings.Join(s.Hosts, ",") }, Wide: true},
	}}
)

func number(n int) string { return strconv.Itoa(n) }

// run lists for c, on the cluster or the engine that o will say.
func (l listing[T]) run(con *console.Console, c *cobra.Command, o *cluster.Options) *cobra.Command {
	format := output.AddListFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		all, err := l.all(c.Context(), o.Options)
		if err != nil {
			return exit.Firm(err)
		}
		return output.PrintList(*format, con.Out, l.kind, all, l.columns)
	}
	return c
}

// complete offers the names of all; none if the engine does not answer.
func (l listing[T]) complete(env func(string) string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		var o cluster.Options
		if clusterOptions(env, c, &o) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, _ := l.all(c.Context(), o.Options)
		for _, one := range all {
			names = append(names, l.columns[0].Cell(one))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteNames offers the names of the clusters that an engine runs.
func CompleteNames(env func(string) string) cobra.CompletionFunc { return clusterListing.complete(env) }
