package thishost

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/localregistry"
)

// registryCommand runs the local registry of a cluster of containers.
func registryCommand(con *console.Console) *cobra.Command {
	o := localregistry.Settings{Log: con.Say}
	var listen string
	var mirrors []string
	c := &cobra.Command{
		Use: "registry", Hidden: true, Args: cobra.NoArgs,
		Short: "Run the registry of a cluster of containers, with a cache of other registries",
		RunE: func(c *cobra.Command, _ []string) error {
			process.SaveMemory()
			for _, text := range mirrors {
				m, err := mirror.Parse(text)
				if err != nil {
					return exit.Usage(fmt.Errorf("--mirror %w", err))
				}
				o.Mirrors = append(o.Mirrors, m)
			}
			server, err := localregistry.New(o)
			if err != nil {
				return err
			}
			return server.Serve(c.Context(), listen)
		},
	}
	c.Flags().StringVar(&o.Name, "name", "localhost", "name of the registry in the names of images")
	c.Flags().StringVar(&o.Dir, "dir", localregistry.Dir, "directory of the images")
	c.Flags().Int64Var(&o.Cache, "cache", localregistry.DefaultCache, "limit for the images of other registries in bytes")
	c.Flags().StringVar(&listen, "listen", fmt.Sprintf(":%d", localregistry.Port), "address to listen on")
	c.Flags().StringArrayVar(&mirrors, "mirror", nil, "registry that serves the images of another one; may be repeated")
	return c
}
