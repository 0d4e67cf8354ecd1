package main

import (
	"context"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func (p *program) offlineBootstrap() *cobra.Command {
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
		Args: cobra.MaximumNArgs(1),
	}
	p.addSettings(c, config.Bootstrap)
	p.addTimeline(c)
	dryRun := c.Flags().Bool("dry-run", false, "list every change and make none")
	format := addOutput(c)
	c.Flags().Lookup("output").Usage = "how --dry-run prints: table, json or yaml"
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkOutput(*format); err != nil {
			return err
		}
		cfg, err := p.loadRegistry(c, config.Bootstrap, args)
		if err != nil {
			return err
		}
		h, release, err := p.openHost(c.Context(), cfg, nil, "")
		if err != nil {
			return err
		}
		defer release()
		h.TakeLoaded()
		if h, err = p.lookFirst(c.Context(), h, local.Loaded); err != nil {
			return err
		}
		if *dryRun {
			return p.printChanges(c.Context(), *format, plan.Load(h))
		}
		return p.fill(c.Context(), h)
	}
	return c
}

func (p *program) fill(ctx context.Context, h *local.Host) error {
	started := time.Now()
	runner := &step.Runner{Emit: p.report.Event}
	if err := runner.Do(ctx, plan.Load(h)); err != nil {
		return &resumeError{err, resumeAdvice}
	}
	p.endProgress()
	p.say("this host has all images, in " + progress.Took(time.Since(started)))
	p.say("`kube-bootstrap master` or `kube-bootstrap worker` makes it part of a cluster; `kube-bootstrap turndown` takes it all back")
	return nil
}
