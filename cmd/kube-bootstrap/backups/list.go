package backups

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
)

func listCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "list DIR",
		Short: "List the backups of a directory, and whether they can be restored",
		Long: `List the backups of a directory (files whose names end with ` + suffix + `), the newest
first, and whether they can be restored. Each file is read to its end. Without
--identity, encrypted backups cannot be read.`,
		Example: "  kube-bootstrap backup list /var/backups --identity backup.key",
	}
	identity := addIdentity(c)
	dir := ""
	output.ListCommand(c, con.Out, "Backup", columns, func(context.Context) ([]verified, error) {
		identities, err := identity()
		if err != nil {
			return nil, err
		}
		return list(dir, identities)
	})
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		dir = args[0]
		return run(c, args)
	}
	return c
}

var columns = []output.Column[verified]{
	{Head: "FILE", Cell: func(v verified) string { return v.File }},
	{Head: "MADE", Cell: verified.when},
	{Head: "HOST", Cell: verified.host},
	{Head: "SIZE", Cell: func(v verified) string { return megabytes(v.Size) }},
	{Head: "STATE", Cell: func(v verified) string { return cmp.Or(v.Problem, "good") }},
}

func (v verified) when() string {
	if v.Origin == nil {
		return "-"
	}
	return v.Created.Format(time.DateTime)
}

func (v verified) host() string {
	if v.Origin == nil {
		return "-"
	}
	return v.Host
}

func list(dir string, identities []age.Identity) ([]verified, error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	all := make([]verified, 0, len(paths))
	for _, path := range paths {
		v, err := verify(path, identities, io.Discard)
		if err != nil {
			v = verified{File: path, Size: sizeOf(path), Problem: err.Error()}
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b verified) int { return b.made().Compare(a.made()) })
	return all, nil
}

// made returns the time of a backup, the zero time if the backup cannot be read.
func (v verified) made() time.Time {
	if v.Origin == nil {
		return time.Time{}
	}
	return v.Created
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
