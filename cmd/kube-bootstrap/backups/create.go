// Package backups has the commands that make and check backups of a cluster.
package backups

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/thishost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/recovery"
)

// Command returns the commands about backups.
func Command(con *console.Console) *cobra.Command {
	c := command.Parent("backup", "Back up the cluster of this control plane, and check backups",
		createCommand(con), scheduleCommand(con), verifyCommand(con), listCommand(con))
	thishost.OnThisHost(c)
	return c
}

func createCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "create [FILE|DIR]",
		Short: "Write a backup of the cluster to a new file",
		Long: `Write a backup of the cluster to a new file, and print its path. Without FILE, its
name contains the name of this control plane and the time. It contains etcd's data,
the certificate authorities, all keys and the settings: everything that
"kube-bootstrap restore" needs, and everything that somebody needs to control the
cluster. It contains no images and no volumes of pods.

The backup is encrypted for each --recipient, a public key of age ("age1...") or a
file with such keys. Keep the private key on another machine: nobody can restore
the backup without it. "age-keygen -o backup.key" makes both. Nothing is written
that is not encrypted. The file is read again before it gets its name.`,
		Example: `  kube-bootstrap backup create /var/backups --recipient age1...
  kube-bootstrap backup create cluster.backup --recipient administrators.txt`,
	}
	to := addRecipients(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		keys, err := to.keys()
		if err != nil {
			return exit.Usage(err)
		}
		return create(c.Context(), con, targetOf(args), keys)
	}
	return c
}

// targetOf returns the file or directory that a user names.
func targetOf(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

func create(ctx context.Context, con *console.Console, target string, keys []string) error {
	release, err := thishost.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	h, err := thishost.OpenControlPlane()
	if err != nil {
		return err
	}
	path, err := fileOf(target, h.Config.HostName, time.Now())
	if err != nil {
		return exit.Usage(err)
	}
	recipients, err := backup.Recipients(keys)
	if err != nil {
		return err
	}
	warnPlain(con, path, len(keys) == 0)
	err = con.Do(ctx, "backup", "back up the cluster", func(ctx context.Context) error {
		return recovery.Create(ctx, h, con.Version, path, recipients)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(con.Out, path)
	return err
}

// fileOf returns the path of a new backup: target, or a file in the directory target.
func fileOf(target, host string, now time.Time) (string, error) {
	path := target
	if info, err := os.Stat(target); err == nil && info.IsDir() {
		path = filepath.Join(target, backup.Name(host, now))
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s exists; a backup replaces no file", path)
	}
	return path, nil
}
