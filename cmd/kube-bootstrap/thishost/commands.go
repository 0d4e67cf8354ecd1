// Package thishost has the commands that act on the host on which they run.
package thishost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/localregistry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/upkeep"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Commands returns the commands that act on this host, further ones, and hidden ones for units and other hosts.
func Commands(con *console.Console, further ...*cobra.Command) []*cobra.Command {
	all := append(further,
		masterCommand(con), workerCommand(con), turndownCommand(con), forgetCommand(con), restoreCommand(con),
		preflightCommand(con),
		statusCommand(con), dumpCommand(con),
		certsCommand(con), kubectlCommand(con.Env), userKubeconfig(con.Out),
		bootCommand(con), agentCommand(con), keepCommand(con), markCommand(con), loadBalancerCommand(),
		registryCommand(con),
	)
	for _, c := range all {
		OnThisHost(c)
	}
	return all
}

// OnThisHost prepares a command that acts on this host, and the commands below it.
func OnThisHost(c *cobra.Command) {
	command.Each(c, withUmask)
	command.Each(c, needingLinux)
}

func withUmask(c *cobra.Command) {
	run := c.RunE
	if run == nil {
		return
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		host.SetUmask()
		return run(c, args)
	}
}

// agentCommand is what the init system of a host runs.
func agentCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "agent", Hidden: true,
		Short: "Run the agent of this host: balancer, approval of certificates, repairs",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := AsRoot(); err != nil {
				return err
			}
			lock := func(ctx context.Context) (context.Context, func(), error) {
				return host.LockInBackground(ctx, lockPath)
			}
			return upkeep.Agent{Lock: lock, Log: con.Say, Version: con.Version}.Run(c.Context())
		},
	}
}

// keepCommand does at once what the agent of a control plane does soon.
func keepCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "keep", Hidden: true,
		Short: "Adapt a control plane to the number of control planes, and spread CoreDNS over the nodes",
		RunE: func(c *cobra.Command, _ []string) error {
			return onControlPlane(c.Context(), con, "keep", func(ctx context.Context, p parts.Parts) error {
				release, err := host.Lock(ctx, lockPath)
				if err != nil {
					return err
				}
				defer release()
				return upkeep.ReconcileCluster(ctx, p.Etcd.Member, p.ControlPlane, p.Addons)
			})
		},
	}
}

// loadBalancerCommand runs the load balancer of a cluster of containers.
func loadBalancerCommand() *cobra.Command {
	server := balancer.External{}
	c := &cobra.Command{
		Use: "load-balancer", Hidden: true,
		Short: "Forward a port to the control planes that are ready",
		RunE: func(c *cobra.Command, _ []string) error {
			return server.Serve(c.Context())
		},
	}
	c.Flags().StringVar(&server.Name, "name", "", "name that resolves to all control planes")
	c.Flags().IntVar(&server.Port, "port", 0, "port of the API servers, and of the load balancer")
	return c
}

// bootCommand is what the boot unit runs just before Docker starts.
func bootCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "boot", Hidden: true,
		Short: "Update Docker's settings after a change of the flannel lease",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := AsRoot(); err != nil {
				return err
			}
			release, err := host.LockUnless(c.Context(), lockPath, plan.RestartsDocker)
			if errors.Is(err, host.ErrLocked) {
				// That run restarts Docker, which waits for this unit: to wait
				// for the run here would be for ever. It sees to the same things.
				con.Say("another run is in progress and sees to Docker's settings")
				return nil
			}
			if err != nil {
				return err
			}
			defer release()
			saved, err := local.ReadSaved(host.Files{})
			if err = errors.Join(err, saved.Lost); err != nil || saved.Role == "" {
				return err
			}
			h, err := local.Open(saved.Config)
			if err != nil {
				return err
			}
			return plan.Boot(c.Context(), h)
		},
	}
}

// registryCommand runs the local registry of a cluster of containers.
func registryCommand(con *console.Console) *cobra.Command {
	o := localregistry.ServerSettings{Log: con.Say}
	var listen string
	var mirrors []string
	c := &cobra.Command{
		Use: "registry", Hidden: true,
		Short: "Run the registry of a cluster of containers, with a cache of other registries",
		RunE: func(c *cobra.Command, _ []string) error {
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
	c.Flags().Int64Var(&o.Cache, "cache", localregistry.DefaultCache,
		"limit for the images of other registries in bytes")
	c.Flags().StringVar(&listen, "listen", fmt.Sprintf(":%d", localregistry.Port), "address to listen on")
	c.Flags().StringArrayVar(&mirrors, "mirror", nil, "registry that serves the images of another one; may be repeated")
	return c
}

// markCommand is what `cluster up` runs on a control plane for a node with labels or taints.
func markCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use: "mark NODE", Hidden: true,
		Short: "Set the labels and taints of another node from its settings",
	}
	labels := c.Flags().StringSlice("node-label", nil, "labels of the node: KEY=VALUE")
	taints := c.Flags().StringSlice("node-taint", nil, "taints of the node: KEY=VALUE:EFFECT")
	c.RunE = func(c *cobra.Command, args []string) error {
		var own config.Config
		if err := cmp.Or(setField(&own, "nodeLabels", *labels), setField(&own, "nodeTaints", *taints)); err != nil {
			return exit.Usage(err)
		}
		return onControlPlane(c.Context(), con, "label node "+args[0], func(ctx context.Context, _ parts.Parts) error {
			return membership.Label(ctx, args[0], own.NodeLabels, own.NodeTaints)
		})
	}
	return c
}

// setField sets a list of the settings.
func setField(cfg *config.Config, field string, words []string) error {
	s, _ := config.Find(field)
	return step.Wrap(s.Set(cfg, strings.Join(words, ",")), "--%s", s.Flag)
}
