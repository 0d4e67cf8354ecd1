package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/bundles"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func clusterReup(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "reup",
		Short: "Build Kubernetes from a checkout and restart the changed components",
		Long: `Build Kubernetes components from a checkout and run them in a running cluster:
all changed components, or the components that flags select. Only a component that
differs from the running one is restarted, and only on the nodes that run it.
Nodes, pods and the state of the cluster stay. If the checkout does not compile,
nothing is changed. A second run finds nothing to do, or continues an interrupted
run.

The version of a built component is the cluster's version and a hash of its
compiled code: v1.36.3+5d7e3f0a91b2. A component whose code equals the release
has the version of the release.`,
		Example: `  kube-bootstrap cluster reup --k8s-dir ~/kubernetes
  kube-bootstrap cluster reup --k8s-dir ~/kubernetes --build-apiserver --build-kubelet
  kube-bootstrap cluster reup --name second --k8s-dir . -o json`,
	}
	settings.AddFlags(c, config.Named|config.Build)
	takeCluster(c)
	con.AddRecords(c.Flags())
	format := output.AddFlag(c)
	build := map[string]*bool{}
	for _, name := range image.Programs() {
		build[name] = c.Flags().Bool("build-"+strings.TrimPrefix(name, "kube-"), false,
			"build "+name+" alone, or with the others that are named")
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, origins, err := settings.Load(con.Env, c.Flags(), config.Named|config.Build, "")
		if err != nil {
			return err
		}
		o, err := toClusterOptions(cfg, origins)
		if err != nil {
			return err
		}
		named := slices.DeleteFunc(image.Programs(), func(name string) bool { return !*build[name] })
		return reup(step.WithLimit(c.Context(), cfg.TimeoutForServices), con, cfg, o, named, *format)
	}
	return c
}

func reup(
	ctx context.Context, con *console.Console, cfg config.Config, o cluster.Options, named []string,
	format output.Format,
) error {
	started := time.Now()
	if cfg.K8sDir == "" {
		return exit.Usage(errors.New("k8sDir: missing; say with --k8s-dir where the checkout of Kubernetes is"))
	}
	made, v, err := whatToReup(ctx, cfg, o)
	if err != nil {
		return exit.Firm(err)
	}
	dir, err := bundles.Checkout(cfg, v)
	if err != nil {
		return exit.Firm(err)
	}
	runner, err := con.Begin()
	if err != nil {
		return err
	}
	if made.Bundle == "" {
		cfg.KubernetesVersion, cfg.Addons = made.Kubernetes, extension.AddonNames()
		images, err := bundles.ForHosts(ctx, con.Say, cfg)
		if err == nil {
			err = runner.Do(ctx, images.Plan)
		}
		if err != nil {
			return err
		}
		made.Bundle = images.Bundle
	}
	o.Kubernetes, o.Bundle = made.Kubernetes, ""
	if o.Components, err = buildPrograms(ctx, runner, o,
		offline.ProgramOptions{Base: made.Bundle, K8sDir: dir, Build: named, Keep: made.Components}); err != nil {
		return exit.Firm(err)
	}
	var nodes []string
	err = Drawn(runner, runAgain, func(emit func(session.HostEvent)) (err error) {
		nodes, err = cluster.Reup(ctx, o, emit)
		return err
	})
	if err != nil {
		return err
	}
	con.Done(started, "cluster "+o.Name+" runs what the checkout is compiled to")
	return showReup(con.Out, format, v, o, nodes)
}

// whatToReup inspects the cluster, if the version of the checkout can be used at all.
func whatToReup(ctx context.Context, cfg config.Config, o cluster.Options) (cluster.Installed, image.Versions, error) {
	if _, err := bundles.Checkout(cfg, image.Versions{}); err != nil {
		return cluster.Installed{}, image.Versions{}, err
	}
	made, err := cluster.ReadInstalled(ctx, o.Selection)
	if err != nil {
		return made, image.Versions{}, err
	}
	v, err := image.For(made.Kubernetes, image.Versions{})
	return made, v, err
}

// buildPrograms builds what a checkout has changed; without a checkout nothing.
func buildPrograms(
	ctx context.Context, runner *step.Runner, o cluster.Options, programs offline.ProgramOptions,
) (built cluster.BuiltComponents, err error) {
	if programs.K8sDir == "" {
		return built, nil
	}
	at, err := o.Selection.WithDefaults()
	if err != nil {
		return built, err
	}
	programs.Output = at.ComponentsPath()
	err = runner.Do(ctx, step.Plan{{step.Always("build-programs", "build what changed in "+programs.K8sDir,
		func(ctx context.Context) error {
			v, err := offline.BuildPrograms(ctx, programs)
			built = cluster.BuiltComponents{Bundle: programs.Output, Versions: v.Programs}
			return err
		})}})
	return built, err
}

// reupped is what `cluster reup -o json` prints.
type reupped struct {
	Name     string            `json:"name"`
	Programs map[string]string `json:"programs"` // with the version of each
	Nodes    []string          `json:"nodes"`    // where something was relaunched
}

func showReup(out io.Writer, format output.Format, v image.Versions, o cluster.Options, nodes []string) error {
	r := reupped{Name: o.Name, Programs: map[string]string{}, Nodes: append([]string{}, nodes...)}
	v.Programs = o.Components.Versions
	for _, name := range image.Programs() {
		r.Programs[name] = v.ProgramVersion(name)
	}
	return format.Print(out, "Reup", r, func(w io.Writer) {
		output.Row(w, "PROGRAM", "VERSION")
		for _, name := range slices.Sorted(slices.Values(image.Programs())) {
			output.Row(w, name, r.Programs[name])
		}
		if len(nodes) == 0 {
			fmt.Fprintln(w, "nothing was relaunched: every node runs this already")
			return
		}
		fmt.Fprintln(w, "relaunched on: "+strings.Join(nodes, ", "))
	})
}
