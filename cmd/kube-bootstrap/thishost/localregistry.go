package thishost

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/localregistry"
)

// registryCommand runs the local registry of a cluster of containers.
func registryCommand() *cobra.Command {
	var name, dir, listen string
	var mirrors []string
	c := &cobra.Command{
		Use: "registry", Hidden: true, Args: cobra.NoArgs,
		Short: "Run the registry of a cluster of containers, with a cache of other registries",
		RunE: func(c *cobra.Command, _ []string) error {
			process.SaveMemory()
			var from []mirror.Mirror
			for _, text := range mirrors {
				m, err := mirror.Parse(text)
				if err != nil {
					return exit.Usage(fmt.Errorf("--mirror %w", err))
				}
				from = append(from, m)
			}
			server, err := localregistry.New(name, dir, from)
			if err != nil {
				return err
			}
			return server.Serve(c.Context(), listen)
		},
	}
	c.Flags().StringVar(&name, "name", "localhost", "name of the registry in the names of images")
	c.Flags().StringVar(&dir, "dir", localregistry.Dir, "directory of the images")
	c.Flags().StringVar(&listen, "listen", fmt.Sprintf(":%d", localregistry.Port), "address to listen on")
	c.Flags().StringArrayVar(&mirrors, "mirror", nil, "registry that serves the images of another one; may be repeated")
	return c
}
