package localcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/dockertools"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
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
	dryRun      bool
	prune       bool
	format      *output.Format
}

func addMachineFlags(con *console.Console, c *cobra.Command) *machineFlags {
	var f machineFlags
	f.programs.Version = con.Version
	c.Flags().IntVar(&f.concurrency, "concurrency", machines.DefaultConcurrency,
		"machines that are set up at the same time")
	c.Flags().StringVar(&f.programs.Dir, "programs", "",
		"directory with kube-bootstrap-linux-ARCH, for machines whose program neither is this one nor is in the bundle")
	c.Flags().BoolVar(&f.docker.Repositories, "install-docker", false,
		"install Docker from the packages of the distribution on machines that have none")
	c.Flags().StringVar(&f.docker.Packages, "docker-packages", "",
		"directory with packages to install Docker from, on machines that have none and no network")
	return &f
}

// addPlanFlags adds the flags of `cluster up` about all machines of a file.
func (f *machineFlags) addPlanFlags(c *cobra.Command) {
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "list every change to the machines of the file and make none")
	c.Flags().BoolVar(&f.prune, "prune", false, "drain and remove the nodes that are not in the file of machines")
	f.format = output.AddFlag(c)
	c.Flags().Lookup("output").Usage = "how --dry-run prints: " + output.Words
}

// onlyMachines returns the error of a flag that clusters of containers do not have.
func onlyMachines(c *cobra.Command) error {
	for _, name := range []string{"dry-run", "prune", "output", "concurrency", "programs", "install-docker",
		"docker-packages"} {
		if c.Flags().Changed(name) {
			return exit.Usage(fmt.Errorf("--%s is only for clusters whose nodes are machines", name))
		}
	}
	return nil
}

// check returns the error of a value that no run can use.
func (f machineFlags) check() error {
	if f.concurrency >= 1 {
		return nil
	}
	return exit.Usage(fmt.Errorf("--concurrency %d: must be at least 1; omit it for %d", f.concurrency,
		machines.DefaultConcurrency))
}

// hasMachines reports whether the nodes of the cluster are machines.
func hasMachines(cfg config.Config) bool { return len(cfg.Nodes) > 0 && cfg.Nodes[0].Address != "" }

// machinesOf returns the machines of a configuration file.
func machinesOf(cfg config.Config, ask ssh.Questions) machines.Choice {
	choice := machines.Choice{Cluster: cfg.Name, Ask: ask, Connections: &machines.Connections{}}
	number := map[string]int{}
	for _, n := range cfg.Nodes {
		spec := nodeSpec(n)
		if n.Name == "" {
			number[n.Role]++
			spec.Name = fmt.Sprintf("%s-%d", n.Role, number[n.Role])
		}
		choice.Machines = append(choice.Machines, machines.Machine{
			Spec: spec, SSH: n.Settings.SSH.Over(cfg.SSH), Settings: n.Settings,
		})
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
		Docker: f.docker, Files: files, MasterArgs: o.MasterArgs, WorkerArgs: o.WorkerArgs, Prune: f.prune,
	}
}

// upMachines makes machines the nodes of a cluster.
func upMachines(
	con *console.Console, c *cobra.Command, cfg config.Config, origins config.Origins, flags upFlags,
) error {
	for _, name := range []string{"recreate", "retain", "snapshot"} {
		if c.Flags().Changed(name) {
			return exit.Usage(fmt.Errorf("--%s is only for clusters whose nodes are containers", name))
		}
	}
	if err := flags.machines.check(); err != nil {
		return err
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
	options := machineOptions(o, *flags.machines)
	if flags.machines.dryRun {
		return printPlan(c.Context(), con.Out, *flags.machines.format, options)
	}
	if flags.kubeconfig != noKubeconfig {
		if options.Kubeconfig, err = kubeconfigPath(con.Env, flags.kubeconfig); err != nil {
			return err
		}
	}
	result, err := setUp(con, c, options, "cluster "+o.Name+" is up")
	return errors.Join(printResult(con, options, result), err)
}

// printPlan prints what a run would do on each machine.
func printPlan(ctx context.Context, out io.Writer, format output.Format, o machines.Options) error {
	plans, err := machines.Plan(ctx, o)
	if err != nil {
		return exit.Firm(err)
	}
	return format.Print(out, "MachinePlan", plans, func(w io.Writer) {
		output.Row(w, "MACHINE", "ADDRESS", "STATE", "CHANGES")
		for _, p := range plans {
			output.Row(w, p.Name, p.Address, p.State, cmp.Or(strings.Join(p.Changes, ", "), "none"))
		}
	})
}

// setUp draws machines.Up, and prints what is done at its end.
func setUp(con *console.Console, c *cobra.Command, o machines.Options, done string) (result machines.Result, _ error) {
	runner, err := con.Begin()
	if err != nil {
		return result, err
	}
	started := time.Now()
	err = Drawn(runner, runAgain, func(emit func(session.HostEvent)) (err error) {
		result, err = machines.Up(c.Context(), o, emit)
		return err
	})
	if err != nil {
		con.End()
		return result, err
	}
	con.Done(started, done)
	return result, nil
}

// printResult prints the nodes, also those of a cluster that is partly set up.
func printResult(con *console.Console, o machines.Options, result machines.Result) error {
	if len(result.Nodes) == 0 {
		return nil
	}
	for _, hint := range result.Hints(o.Prune) {
		con.Say(hint)
	}
	if result.Context != "" {
		con.Say("context " + result.Context + " is the current one in " + o.Kubeconfig)
	}
	return printNodes(con.Out, result.Nodes)
}

// loadImage copies images into nodes of any kind.
func loadImage(
	ctx context.Context, o session.Selection, from string, images []string, emit func(session.HostEvent),
) error {
	if onMachines(o) {
		return machines.LoadImage(ctx, o, from, dockertools.OwnImages, images, emit)
	}
	return dockertools.LoadImage(ctx, o, from, images, emit)
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

func removeNode(
	ctx context.Context, o cluster.Options, name string, force bool, drain node.Drain, emit func(session.HostEvent),
) error {
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
	if err := f.check(); err != nil {
		return err
	}
	one := machineOptions(o, f)
	one.Only = name
	_, err := setUp(con, c, one, "node "+name+" is Ready")
	return err
}

// terminalOn opens a terminal on a node of any kind.
func terminalOn(ctx context.Context, o session.Selection, node string, shell host.Shell) error {
	if onMachines(o) {
		return machines.ShellOn(ctx, o, node, shell)
	}
	return dockertools.ShellOn(ctx, o, node, shell)
}

// kubectlOnMachine runs kubectl on a control plane, because this machine may have no route to an API server.
func kubectlOnMachine(ctx context.Context, con *console.Console, o cluster.Options, args []string) error {
	name, err := machines.ControlPlane(ctx, o.Selection)
	if err != nil {
		return exit.Firm(err)
	}
	err = onNode(ctx, con, o, name, append([]string{"kubectl"}, args...))
	if failed, ok := errors.AsType[*access.ExitError](err); ok {
		return exit.Status(failed.Code)
	}
	return exit.Firm(err)
}
