package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func (p *program) clusterCommand() *cobra.Command {
	return parent("cluster", "A cluster whose hosts are containers on a Docker engine",
		p.clusterUp(), p.clusterDown(), p.clusterClean(), p.clusterReup(), p.clusterSnapshot(), p.clusterStatus(), p.clusterKubeconfig(), p.clusterKubectl(), p.clusterList(),
		p.clusterLoadImage(), p.clusterDump(), p.clusterE2E(), p.clusterE2ESerial())
}

// addNameFlags adds --name, the flags that select the engine and the
// configuration file to a command. clusterOptions fills the returned options.
func (p *program) addNameFlags(c *cobra.Command) *cluster.Options {
	p.addSettings(c, config.Named)
	takeCluster(c)
	return &cluster.Options{}
}

// takeCluster makes a command take --cluster for --name, as the commands about
// nodes do, whose --name is the node.
func takeCluster(c *cobra.Command) {
	known := c.Flags().GetNormalizeFunc()
	c.Flags().SetNormalizeFunc(func(flags *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "cluster" {
			return "name"
		}
		return known(flags, name)
	})
}

// clusterOptions fills o from flags, environment and file, and sets the other
// flags of c from the environment.
func (p *program) clusterOptions(c *cobra.Command, o *cluster.Options) error {
	if err := p.fromEnv(c); err != nil {
		return err
	}
	cfg, origins, err := p.load(c.Flags(), config.Named, "")
	if err != nil {
		return err
	}
	c.SetContext(step.WithLimit(c.Context(), cfg.TimeoutForServices))
	if *o, err = toClusterOptions(cfg, origins); err != nil {
		return err
	}
	// Where --cluster is another word for --name, the settings have its value.
	if of := c.Flags().Lookup("cluster"); of != nil && of.Name == "cluster" && of.Value.String() != "" {
		o.Name = of.Value.String()
	}
	return nil
}

// fromEnv sets the flags of c that are no settings and were not typed from
// their variables.
func (p *program) fromEnv(c *cobra.Command) error {
	var errs []error
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		value, name := config.ClusterEnv(p.env)(config.EnvName(f.Name))
		if f.Changed || value == "" || f.Name == "help" || f.Name == "config" || config.IsSetting(f.Name) {
			return
		}
		if err := c.Flags().Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment %s: %w", name, err))
		}
	})
	if c.Flags().Changed("docker-host") && c.Flags().Changed("docker-context") {
		errs = append(errs, errors.New("--docker-host and --docker-context both name an engine: give one of them"))
	}
	if len(errs) == 0 {
		return nil
	}
	return &usageError{errors.Join(errs...)}
}

func (p *program) clusterUp() *cobra.Command {
	c := &cobra.Command{
		Use:   "up",
		Short: "Create a local cluster, or complete it",
		Long: `Create hosts, which are containers that behave like machines, and a cluster on
them, with the same commands that real hosts get. Run again, it creates what is
missing and leaves the rest alone. A cluster that ` + "`cluster down`" + ` switched off comes
back as it was.

An existing cluster keeps the settings that it was created with, even if the
defaults have changed. "cluster up" adds workers and applies the settings that
hosts can change. Any other different setting is an error, and nothing is changed.
With --recreate the cluster is removed and created again, with its settings and
the flags of this command. Saved snapshots stay, and the snapshot "` + snapshot.First + `" is replaced. It lists what is removed and asks first; --yes
confirms it where there is no terminal.

The admin's kubeconfig is merged into yours and becomes the current context, as
"cluster kubeconfig --merge" does. "cluster clean" removes it from there.

Without --bundle the images are those of the cache; else the official ones, where
they can be reached; else they are built from source, which takes minutes once.
What was pulled or built is kept in the cache. With --k8s-dir, those programs of
Kubernetes that differ from the release are built from a checkout.`,
		Example: `  kube-bootstrap cluster up
  kube-bootstrap cluster up --name second --workers 3 --dind-subnet 10.193.0.0/16 --flannel-backend host-gw
  kube-bootstrap cluster up -f cluster.yaml
  kube-bootstrap cluster up --k8s-dir ~/kubernetes`,
		Args: cobra.NoArgs,
	}
	p.addSettings(c, config.ClusterUp)
	takeCluster(c)
	p.addTimeline(c)
	var flags upFlags
	c.Flags().BoolVar(&flags.recreate, "recreate", false, "remove the cluster with everything in it but its saved snapshots, and create it again")
	c.Flags().BoolVar(&flags.retain, "retain", false, "leave what was made when something fails")
	c.Flags().BoolVar(&flags.snapshot, "snapshot", true, "keep a snapshot called "+snapshot.First+" of the cluster when it is up for the first time")
	c.Flags().StringVar(&flags.kubeconfig, "kubeconfig", "", "kubeconfig to merge the cluster into; "+noKubeconfig+" for none (empty: the first file of $KUBECONFIG, or ~/.kube/config)")
	addYes(c, &flags.yes)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := p.fromEnv(c); err != nil {
			return err
		}
		return p.up(c, flags)
	}
	return c
}

func (p *program) clusterStatus() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the hosts of a cluster, what is in place on them, and their nodes",
		Long: `Show the hosts of a cluster, what is in place on them, and their nodes. Nothing
is changed. The exit code is 5 when something is missing or not Ready.`,
		Example: "  kube-bootstrap cluster status\n  kube-bootstrap cluster status --name second -o json",
		Args:    cobra.NoArgs,
	}
	o := p.addNameFlags(c)
	format := addOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := errors.Join(p.clusterOptions(c, o), checkOutput(*format)); err != nil {
			return err
		}
		return p.showCluster(c.Context(), *format, *o)
	}
	return c
}
