package thishost

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/dump"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
)

func dumpCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "dump DIR",
		Short: "Write the logs and the state of this host for a bug report into a directory",
		Long: `Write the logs and the state of this host for a bug report into a new directory:
status, settings, versions, logs of kube-bootstrap, its components and both Docker
daemons, network, and on a control plane the cluster's objects. It contains no
Secrets, no keys and no output of your own containers and pods. Of your own objects
it has names, labels, images, ports and states only. What is known to be a key, a
token or a password is removed from all texts; read them before you publish them.

Sources that fail, or do not end within a minute, are listed in errors.txt. The
path of the directory is printed. For a cluster of containers, use "kube-bootstrap
cluster dump".`,
		Example: "  kube-bootstrap dump ./report",
		RunE: func(c *cobra.Command, args []string) error {
			if err := AsRoot(); err != nil {
				return err
			}
			if err := dump.MakeDir(args[0]); err != nil {
				return exit.Usage(err)
			}
			return dumpHost(c.Context(), con, args[0])
		},
	}
}

func dumpHost(ctx context.Context, con *console.Console, dir string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if saved, err := local.ReadSaved(host.Files{}); err == nil && saved.Role == "" {
		con.Say("this host is not part of a cluster; the dump contains only what every host has")
	}
	var failed []string
	err = con.Do(ctx, "dump", "collect the logs and the state of this host", func(ctx context.Context) (err error) {
		failed, err = dump.Collect(ctx, dump.Here(program), dir)
		return err
	})
	if len(failed) > 0 {
		con.Warn("missing or incomplete: " + strings.Join(failed, ", ") + "; see " + filepath.Join(dir,
			dump.ErrorsFile))
	}
	if err != nil {
		con.Warn("what was collected so far is in " + dir)
		return err
	}
	_, err = fmt.Fprintln(con.Out, dir)
	return err
}
