package backups

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
)

// ClusterCommand returns the command that backs up a cluster of containers or machines.
func ClusterCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "backup [FILE|DIR]",
		Short: "Write a backup of a cluster to a new file of this machine",
		Long: `Write a backup of a cluster to a new file of this machine, and print its path. The
first control plane that runs makes it, as "kube-bootstrap backup create" does, and
"kube-bootstrap restore" on a host restores it. A snapshot ("kube-bootstrap cluster
snapshot") also contains the disks of all nodes.`,
		Example: `  kube-bootstrap cluster backup --recipient age1...
  kube-bootstrap cluster backup /var/backups -f lab.yaml --recipient administrators.txt`,
	}
	o := localcluster.AddNameFlags(con, c)
	to := addRecipients(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		keys, err := to.keys()
		if err != nil {
			return exit.Usage(err)
		}
		path, err := fileOf(targetOf(args), o.Selection.Name, time.Now())
		if err != nil {
			return exit.Usage(err)
		}
		warnPlain(con, path, len(keys) == 0)
		err = localcluster.Change(con, again, func(emit func(session.HostEvent)) error {
			return exit.Firm(tools.Backup(c.Context(), o.Selection, path, flagsOf(keys), emit))
		}, func() string { return "the cluster is in " + path })
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(con.Out, path)
		return err
	}
	return c
}

func again(error) string { return exit.RunAgain }

// flagsOf returns the flags of `backup create` for public keys.
func flagsOf(keys []string) (flags []string) {
	for _, key := range keys {
		flags = append(flags, "--recipient", key)
	}
	if len(keys) == 0 {
		flags = []string{"--plain"}
	}
	return flags
}
