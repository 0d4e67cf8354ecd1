package localcluster

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines"
)

func nodeInspect(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect NODE",
		Short: "Print what is found on the machine of a node",
		Long: `Print what is found on the machine of a node: its system, its addresses, its clock,
and the cluster that it is part of. The machine need not be part of a cluster, and
no other machine must answer.`,
		Example: `  kube-bootstrap node inspect board-1 -f lab.yaml
  kube-bootstrap node inspect board-1 -f lab.yaml -o json`,
		ValidArgsFunction: command.FirstArg(nodeListing.complete(con.Env)),
	}
	o := addClusterFlags(con, c)
	format := output.AddFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		report, err := machines.Inspect(c.Context(), o.Selection, args[0])
		if err != nil {
			return exit.Firm(err)
		}
		return format.Print(con.Out, "Machine", report, func(w io.Writer) { output.Fields(w, report.Rows()) })
	}
	return c
}
