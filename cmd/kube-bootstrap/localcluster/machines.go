package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline/programs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/ssh"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// machineFlags are the flags of commands that set machines up.
type machineFlags struct {
	concurrency int
	programs    programs.Source
	docker      machines.DockerSource
}

func addMachineFlags(con *console.Console, c *cobra.Command) *machineFlags {
	var f machineFlags
	f.programs.Version = con.Version
	c.Flags().IntVar(&f.concurrency, "concurrency", machines.DefaultConcurrency, "machines that are set up at the same time")
	c.Flags().StringVar(&f.programs.Dir, "programs", "",
		"directory with kube-bootstrap-linux-ARCH, for machines whose program neither is this one nor is in the bundle")
	c.Flags().BoolVar(&f.docker.Repositories, "install-docker", false,
		"install Docker from the packages of the distribution on machines that have none")
	c.Flags().StringVar(&f.docker.Packages, "docker-packages", "",
		"directory with packages to install Docker from, on machines that have none and no network")
	return &f
}

// hasMachines reports whether the nodes of the cluster are machines.
func hasMachines(cfg config.Config) bool { return len(cfg.Nodes) > 0 && cfg.Nodes[0].Address != "" }

// machinesOf returns the machines of a configuration file.
func machinesOf(cfg config.Config, ask ssh.Questions) machines.Choice {
	choice := machines.Choice{Cluster: cfg.Name, Ask: ask}
	number := map[string]int{}
	for _, n := range cfg.Nodes {
		spec := nodeSpec(n)
		if n.Name == "" {
			number[n.Role]++
			spec.Name = fmt.Sprintf("%s-%d", n.Role, number[n.Role])
		}
		choice.Machines = append(choice.Machines, machines.Machine{Spec: spec, SSH: n.Settings.SSH.Over(cfg.SSH), Settings: n.Settings})
	}
	return choice
}

// onMachines reports whether the nodes of the options are machines.
func onMachines(o session.Selection) bool {
	_, ok := o.Provider.(machines.Choice)
	return ok
}

func machineOptions(o cluster.Options, f machineFlags) machines.Options {
	var files []remote.FileCopy
	for _, m := range o.Manifests {
		files = append(files, remote.FileCopy{From: m.Path, To: m.On, Mode: 0o600})
	}
	return machines.Options{
		Selection: o.Selection, Concurrency: f.concurrency, Bundle: o.Bundle, Program: f.programs.For,
		Docker: f.docker, Files: files,
		MasterArgs: o.MasterArgs, WorkerArgs: o.WorkerArgs,
	}
}

// upMachines makes machines the nodes of a cluster.
func upMachines(con *console.Console, c *cobra.Command, cfg config.Config, origins config.Origins, flags upFlags) error {
	for _, name := range []string{"recreate", "retain", "snapshot"} {
		if c.Flags().Changed(name) {
			return exit.Usage(fmt.Errorf("--%s is only for clusters whose nodes are containers", name))
		}
	}
	c.SetContext(step.WithLimit(c.Context(), cfg.TimeoutForServices))
	o, err := toClusterOptions(cfg, origins)
	if err != nil {
		return err
	}
	o.Selection = sessionOptions(cfg, con.Questions())
	if err := errors.Join(checkManifests(o.Manifests), cluster.BadBundle(o.Bundle, false)); err != nil {
		return exit.Firm(err)
	}
	if err := setUp(con, c, machineOptions(o, *flags.machines), "cluster "+o.Name+" is up"); err != nil {
		return err
	}
	return errors.Join(machinesHint(c.Context(), con, o.Selection), mergeKubeconfig(c.Context(), con, o, flags.kubeconfig))
}

// setUp draws machines.Up, and prints what is done at its end.
func setUp(con *console.Console, c *cobra.Command, o machines.Options, done string) error {
	runner, err := con.Begin()
	if err != nil {
		return err
	}
	started := time.Now()
	err = drawn(runner, runAgain, func(emit func(session.HostEvent)) error { return machines.Up(c.Context(), o, emit) })
	if err != nil {
		return err
	}
	con.Done(started, done)
	return nil
}

func machinesHint(ctx context.Context, con *console.Console, o session.Selection) error {
	nodes, err := apiserver.Nodes(ctx, o)
	if err != nil {
		return exit.Firm(err)
	}
	return output.Table.Print(con.Out, "Node", nodes, func(w io.Writer) {
		output.Row(w, "NODE", "STATUS", "VERSION", "ADDRESS")
		for _, n := range nodes {
			output.Row(w, n.Name, n.Status(), n.Version, n.Address)
		}
	})
}

// clean removes a cluster of any kind.
func clean(ctx context.Context, o cluster.Options) error {
	if onMachines(o.Selection) {
		return machines.Clean(ctx, o.Selection, nil)
	}
	return cluster.Clean(ctx, o)
}

func cleanLosses(ctx context.Context, o cluster.Options) ([]string, error) {
	if onMachines(o.Selection) {
		return machines.CleanLosses(ctx, o.Selection)
	}
	return cluster.CleanLosses(ctx, o)
}

func removeNode(ctx context.Context, o cluster.Options, name string, force bool, drain node.Drain, emit func(session.HostEvent)) error {
	if onMachines(o.Selection) {
		return machines.RemoveNode(ctx, o.Selection, name, force, drain, emit)
	}
	return cluster.RemoveNode(ctx, o, name, force, drain, emit)
}

func nodeLosses(ctx context.Context, o cluster.Options, name string, force bool, drain node.Drain) ([]string, error) {
	if onMachines(o.Selection) {
		return machines.NodeLosses(ctx, o.Selection, name, force, drain)
	}
	return cluster.NodeLosses(ctx, o, name, force, drain)
}

// addMachine sets up one machine of the file.
func addMachine(con *console.Console, c *cobra.Command, o cluster.Options, name string, f machineFlags) error {
	if name == "" {
		return exit.Usage(errors.New("say which machine of the file by --name"))
	}
	if err := machines.Listed(o.Selection, name); err != nil {
		return exit.Firm(err)
	}
	one := machineOptions(o, f)
	one.Only = name
	return setUp(con, c, one, "node "+name+" is Ready")
}

// terminalOn opens a terminal on a node of any kind.
func terminalOn(ctx context.Context, con *console.Console, o session.Selection, node string, shell docker.Shell,
	run func(context.Context, session.Selection, string, docker.Shell) error,
) error {
	if !onMachines(o) {
		return run(ctx, o, node, shell)
	}
	sizes := make(chan ssh.Size, 1)
	go func() {
		for {
			select {
			case size := <-shell.Sizes:
				sizes <- ssh.Size{Rows: int(size.Rows), Columns: int(size.Columns)}
			case <-ctx.Done():
				close(sizes)
				return
			}
		}
	}()
	return machines.ShellOn(ctx, o, node, ssh.Shell{
		Args: shell.Args, Terminal: con.Env("TERM"), Input: shell.Input, Output: shell.Output, Sizes: sizes,
	})
}
