package backups

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"slices"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
)

func listCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "list DIR|s3://BUCKET/PREFIX",
		Short: "List the backups of a directory or bucket, and whether they can be restored",
		Long: `List the backups of a directory or bucket (files whose names end with ` + backup.Suffix + `), the newest
first, and whether they can be restored. Each file is read to its end. Without
--identity, encrypted backups cannot be read.`,
		Example: "  kube-bootstrap backup list /var/backups --identity backup.key",
	}
	identity, in := addIdentity(c), addBucket(c)
	dir := ""
	output.ListCommand(c, con.Out, "Backup", columns, func(ctx context.Context) ([]verified, error) {
		identities, err := identity()
		if err != nil {
			return nil, err
		}
		access, err := in.access(con.In, dir)
		if err != nil {
			return nil, exit.Usage(err)
		}
		return list(ctx, dir, access, identities)
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

func list(ctx context.Context, dir string, access backup.S3, identities []age.Identity) ([]verified, error) {
	place, err := openPlace(dir, access)
	if err != nil {
		return nil, err
	}
	files, err := place.List(ctx)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context, path string) (io.ReadCloser, error) {
		return place.Open(ctx, filepath.Base(path))
	}
	all := make([]verified, 0, len(files))
	for _, f := range files {
		path := backup.Join(dir, f.Name)
		v, err := verify(ctx, open, path, identities, io.Discard)
		if err != nil {
			v = verified{File: path, Size: f.Size, Problem: err.Error()}
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b verified) int { return b.made().Compare(a.made()) })
	return all, nil
}

// openPlace also takes a relative path of a directory.
func openPlace(dir string, access backup.S3) (backup.Place, error) {
	if backup.InBucket(dir) {
		return backup.OpenPlace(dir, access)
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return backup.OpenPlace(path, access)
}

// made returns the time of a backup, the zero time if the backup cannot be read.
func (v verified) made() time.Time {
	if v.Origin == nil {
		return time.Time{}
	}
	return v.Created
}
