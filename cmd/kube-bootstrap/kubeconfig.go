package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/kubeconfig"
)

func (p *program) clusterKubeconfig() *cobra.Command {
	c := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the admin's kubeconfig of a cluster, or merge it into your own",
		Long: `Print the admin's kubeconfig of a cluster, for use on this machine. Its address
leads to any control plane that is ready, and stays the same when control planes
come and go. With --merge it goes into the first file of $KUBECONFIG, or into ~/.kube/config, and
becomes the current context; "cluster clean" takes it out again.`,
		Example: `  kube-bootstrap cluster kubeconfig > kubeconfig
  kube-bootstrap cluster kubeconfig --merge`,
		Args: cobra.NoArgs,
	}
	o := p.addNameFlags(c)
	merge := c.Flags().Bool("merge", false, "write it into $KUBECONFIG or ~/.kube/config")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := p.clusterOptions(c, o); err != nil {
			return err
		}
		if *merge {
			return p.mergeKubeconfig(c, *o, "")
		}
		data, err := apiserver.Kubeconfig(c.Context(), o.Options)
		if err != nil {
			return &firmError{err}
		}
		_, err = p.out.Write(data)
		return err
	}
	return c
}

// noKubeconfig is the file name that stands for no kubeconfig.
const noKubeconfig = "-"

// mergeAfterUp merges the kubeconfig of a cluster that is up.
func (p *program) mergeAfterUp(c *cobra.Command, o cluster.Options, file string) error {
	if file == noKubeconfig {
		return nil
	}
	return p.mergeKubeconfig(c, o, file)
}

// mergeKubeconfig merges the admin's kubeconfig of a cluster into a file; if it
// has no name, into the user's own.
func (p *program) mergeKubeconfig(c *cobra.Command, o cluster.Options, file string) error {
	path, err := p.kubeconfigPath(file)
	if err != nil {
		return err
	}
	name, err := kubeconfig.Merge(c.Context(), o.Options, path)
	if err != nil {
		return &firmError{err}
	}
	p.say("context " + name + " is the current one in " + path)
	return nil
}

func (p *program) kubeconfigPath(file string) (string, error) {
	if files := filepath.SplitList(p.env("KUBECONFIG")); file == "" && len(files) > 0 {
		file = files[0]
	}
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the user's kubeconfig: %w; set KUBECONFIG", err)
		}
		file = filepath.Join(home, ".kube", "config")
	}
	return filepath.Abs(file)
}
