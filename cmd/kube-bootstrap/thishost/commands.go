// Package thishost has the commands that act on the host on which they run.
package thishost

import (
	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
)

// Commands returns the commands that act on this host, and the hidden ones that
// units and other hosts run.
func Commands(con *console.Console) []*cobra.Command {
	return []*cobra.Command{
		masterCommand(con), workerCommand(con), turndownCommand(con), forgetCommand(con), preflightCommand(con), statusCommand(con), dumpCommand(con),
		certsCommand(con), tokenCommand(con.Out), kubectlCommand(con.Env), userKubeconfig(con.Out),
		bootCommand(con), agentCommand(con), keepCommand(con), markCommand(con), frontCommand(), registryCommand(con),
	}
}
