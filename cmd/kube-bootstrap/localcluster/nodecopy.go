package localcluster

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
)

func nodeSCP(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "scp SOURCE TARGET",
		Short: "Copy a file to a node or from it",
		Long: `Copy a file to a node or from it. SOURCE or TARGET is NODE:PATH, as with scp. A
relative path on a node begins in /root, and in a directory the file keeps its
name. To copy a directory, send it with tar through "node ssh".`,
		Example: `  kube-bootstrap node scp app.yaml master-1:/root/
  kube-bootstrap node scp worker-1:/etc/docker/daemon.json .
  tar -c app | kube-bootstrap node ssh worker-1 -- tar -x -C /root`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
	}
	o := addClusterFlags(con, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		from, to := placeOf(args[0]), placeOf(args[1])
		if (from.Node == "") == (to.Node == "") {
			return exit.Usage(errors.New("one of SOURCE and TARGET must be NODE:PATH, and the other a file of this " +
				"machine"))
		}
		selection, err := machines.Only(o.Selection, from.Node+to.Node)
		if err != nil {
			return exit.Firm(err)
		}
		return exit.Firm(tools.Copy(c.Context(), selection, from, to))
	}
	return c
}

// placeOf reads NODE:PATH or, as scp does, a path of this machine if a slash precedes the colon.
func placeOf(arg string) tools.Place {
	node, path, found := strings.Cut(arg, ":")
	if !found || strings.Contains(node, "/") {
		return tools.Place{Path: arg}
	}
	return tools.Place{Node: node, Path: path}
}

func nodeIP(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:               "ip NODE",
		Short:             "Print the address of a node",
		Example:           "  kube-bootstrap node ip worker-1",
		ValidArgsFunction: command.FirstArg(nodeListing.complete(con.Env)),
	}
	o := addClusterFlags(con, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		addr, err := cluster.NodeAddr(c.Context(), o.Selection, args[0])
		if err != nil {
			return exit.Firm(err)
		}
		_, err = fmt.Fprintln(con.Out, addr)
		return err
	}
	return c
}
