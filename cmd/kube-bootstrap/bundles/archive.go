package bundles

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
)

// imageArchiveCommand is what `cluster load-image` runs on nodes.
func imageArchiveCommand(con *console.Console) *cobra.Command {
	all := &cobra.Command{
		Use: "image-archive", Hidden: true,
		Short: "Copy images between this host and archives",
	}
	all.AddCommand(loadArchiveCommand(), saveArchiveCommand(con), listArchiveCommand(con))
	return all
}

func loadArchiveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "load", Hidden: true,
		Short: "Load the images of the archive on stdin into Docker and containerd",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			saved, err := local.ReadSaved(host.Files{})
			if err = errors.Join(err, saved.Lost); err != nil {
				return err
			}
			h, err := local.Open(saved.Config)
			if err != nil {
				return err
			}
			return imagestore.LoadArchive(c.Context(), string(h.CRISocket()), local.MainDocker(), host.StateDir,
				c.InOrStdin())
		},
	}
}

func saveArchiveCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "save IMAGE...", Hidden: true,
		Short: "Write an archive of images of Docker to stdout",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return local.MainDocker().Images().Save(c.Context(), con.Out, args...)
		},
	}
}

func listArchiveCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "list IMAGE...", Hidden: true,
		Short: "List the images that Docker has",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, ref := range args {
				has, err := local.MainDocker().Images().Has(c.Context(), ref)
				if err != nil {
					return err
				}
				if has {
					fmt.Fprintln(con.Out, ref)
				}
			}
			return nil
		},
	}
}
