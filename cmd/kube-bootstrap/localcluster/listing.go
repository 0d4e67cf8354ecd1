package localcluster

import (
	"context"
	"errors"
	"io"
	"strconv"
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

// listing is what a command lists of the clusters that an engine runs, and
// what completion offers of it.
type listing[T any] struct {
	all  func(context.Context, session.Options) ([]T, error)
	head []string
	line func(T) []string // beginning with the name
}

var (
	clusterListing = listing[cluster.Summary]{
		cluster.List, []string{"CLUSTER", "MASTERS", "WORKERS", "RUNNING", "SUBNET"},
		func(s cluster.Summary) []string {
			return []string{s.Name, number(s.Masters), number(s.Workers), number(s.Running), s.Subnet}
		},
	}
	nodeListing = listing[cluster.HostNode]{
		cluster.NodeNames, []string{"NODE", "ROLE", "ADDRESS", "STATE"},
		func(n cluster.HostNode) []string { return []string{n.Name, string(n.Role), n.Addr.String(), n.State} },
	}
	snapshotListing = listing[snapshot.Snapshot]{
		snapshot.List, []string{"SNAPSHOT", "MADE", "HOSTS", "VERSION", "SIZE"},
		func(s snapshot.Snapshot) []string {
			return []string{s.Name, s.Made.Local().Format(time.DateTime), number(len(s.Hosts)), s.Kubernetes, progress.Amount(s.Bytes, 0)}
		},
	}
)

func number(n int) string { return strconv.Itoa(n) }

// run lists for c, on the cluster or the engine that o will say.
func (l listing[T]) run(con *console.Console, c *cobra.Command, o *cluster.Options) *cobra.Command {
	format := output.AddFlag(c)
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := errors.Join(clusterOptions(con.Env, c, o), format.Check()); err != nil {
			return err
		}
		all, err := l.all(c.Context(), o.Options)
		if err != nil {
			return exit.Firm(err)
		}
		return format.Print(con.Out, append([]T{}, all...), func(w io.Writer) {
			output.Row(w, l.head...)
			for _, one := range all {
				output.Row(w, l.line(one)...)
			}
		})
	}
	return c
}

// complete offers the names of all there are. An engine that does not answer
// has none to offer.
func (l listing[T]) complete(env func(string) string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		var o cluster.Options
		if clusterOptions(env, c, &o) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, _ := l.all(c.Context(), o.Options)
		for _, one := range all {
			names = append(names, l.line(one)[0])
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteNames offers the names of the clusters that an engine runs.
func CompleteNames(env func(string) string) cobra.CompletionFunc { return clusterListing.complete(env) }
