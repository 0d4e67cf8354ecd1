package backups

import (
	"context"
	"fmt"
	"io"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/recovery"
)

// verified is a backup as `backup verify` and `backup list` print it.
type verified struct {
	File string `json:"file"`
	Size int64  `json:"size"` // bytes
	*backup.Origin
	Objects map[string]int `json:"objects,omitempty"` // number by resource
	Problem string         `json:"problem,omitempty"`
}

func verifyCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "verify FILE|s3://BUCKET/FILE",
		Short: "Check that a backup can be restored",
		Long: `Check that a backup can be restored: read the file to its end, and check each
digest, the hash of etcd, the certificate authorities, the keys and the settings.
"kube-bootstrap restore" makes the same checks, so it accepts what this command
accepts. With --deep, etcd's storage engine also opens the data, in memory, and the
objects are counted. This command needs no cluster.`,
		Example: `  kube-bootstrap backup verify cp.backup --identity backup.key
  kube-bootstrap backup verify cp.backup --identity backup.key --deep -o json`,
	}
	identity, in := addIdentity(c), addBucket(c)
	deep := c.Flags().Bool("deep", false, "open etcd's data in memory and count the objects")
	format := output.AddFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		identities, err := identity()
		if err != nil {
			return err
		}
		o, err := in.opener(con.In, args[0])
		if err != nil {
			return exit.Usage(err)
		}
		var result verified
		err = con.Do(c.Context(), "verify", "check "+args[0], func(ctx context.Context) (err error) {
			if *deep {
				result, err = verifyDeep(ctx, o, args[0], identities)
			} else {
				result, err = verify(ctx, o, args[0], identities, io.Discard)
			}
			return exit.Firm(err)
		})
		if err != nil {
			return err
		}
		return format.Print(con.Out, "Backup", result, result.print)
	}
	return c
}

// addIdentity adds --identity, and returns the function that reads its file.
func addIdentity(c *cobra.Command) func() ([]age.Identity, error) {
	path := c.Flags().String("identity", "", "file with the private key of a recipient")
	return func() ([]age.Identity, error) {
		all, err := backup.Identities(*path)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--identity: %w", err))
		}
		return all, nil
	}
}

func verify(
	ctx context.Context, o opener, path string, identities []age.Identity, to io.Writer,
) (v verified, err error) {
	from, err := o(ctx, path)
	if err != nil {
		return v, err
	}
	defer from.Close()
	counted := &backup.Counter{From: from}
	b, err := recovery.Read(path, counted, identities, to)
	if err != nil {
		return v, err
	}
	return verified{File: path, Size: counted.Size, Origin: &b.Manifest.Origin}, nil
}

// verifyDeep also has etcd's storage engine open the data.
func verifyDeep(ctx context.Context, o opener, path string, identities []age.Identity) (v verified, err error) {
	database, err := snapshot.Memory()
	if err != nil {
		return v, err
	}
	defer database.Close()
	if v, err = verify(ctx, o, path, identities, database); err != nil {
		return v, err
	}
	v.Objects, err = snapshot.Count(database)
	return v, err
}

func (v verified) print(w io.Writer) {
	rows := [][2]string{
		{"File", v.File}, {"Size", megabytes(v.Size)},
		{"Made", v.Created.Format(time.DateTime) + " UTC, on " + v.Host + " (" + v.Address + ")"},
		{"Cluster", v.Cluster}, {"Kubernetes", v.Kubernetes}, {"etcd", v.Etcd},
		{"Hosts", fmt.Sprint(len(v.Hosts))},
	}
	if v.Objects != nil {
		total := 0
		for _, n := range v.Objects {
			total += n
		}
		rows = append(rows, [2]string{"Objects", fmt.Sprintf("%d, of %d resources", total, len(v.Objects))})
	}
	output.Fields(w, rows)
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
