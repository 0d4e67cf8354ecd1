package thishost

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Bootstrap returns the command "bootstrap", which belongs below "offline".
func Bootstrap(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "bootstrap [REGISTRY[/PREFIX]]",
		Short: "Load all images into the stores of this host",
		Long: `Load all images of a cluster into the stores of this host, for its architecture:
the bootstrap Docker, the main Docker and containerd. They come from a private
registry or a bundle; with neither, from the main Docker, where they were loaded
by hand. Nothing that is there is loaded again. After this, master and worker
need neither bundle nor network.

With a registry, later pods and containers pull from there too.`,
		Example: `  kube-bootstrap offline bootstrap --bundle kube.tar.zst
  kube-bootstrap offline bootstrap registry.example.com:5000/k8s --registry-ca ca.crt \
      --registry-username me --registry-password-file password
  for i in $(kube-bootstrap offline list); do docker save $i | ssh host docker load; done
  ssh host kube-bootstrap offline bootstrap`,
	}
	settings.AddFlags(c, config.Bootstrap)
	con.AddRecords(c.Flags())
	dryRun, format := AddDryRun(c, "list every change and make none")
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := settings.LoadRegistry(con.Env, c, config.Bootstrap, args)
		if err != nil {
			return err
		}
		h, release, err := openHost(c.Context(), cfg, nil, "")
		if err != nil {
			return err
		}
		defer release()
		h.ByHand = true
		runner, h, err := checkFirst(c, con, h, local.Loaded)
		if err != nil {
			return err
		}
		if *dryRun {
			return PrintChanges(c.Context(), con, *format, plan.Load(h))
		}
		return fill(c.Context(), con, runner, h)
	}
	withUmask(c)
	needingLinux(c)
	return c
}

func fill(ctx context.Context, con *console.Console, runner *step.Runner, h *local.Host) error {
	started := time.Now()
	if err := runner.Do(ctx, plan.Load(h)); err != nil {
		return exit.Resume(err, resumeAdvice)
	}
	con.Done(started, "this host has all images")
	con.Say("`kube-bootstrap master` or `kube-bootstrap worker` makes it part of a cluster; `kube-bootstrap " +
		"turndown` restores the host")
	return nil
}
