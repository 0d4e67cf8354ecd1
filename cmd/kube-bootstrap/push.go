package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

func (p *program) offlinePush() *cobra.Command {
	c := &cobra.Command{
		Use:   "push [REGISTRY[/PREFIX]]",
		Short: "Push a bundle into a private registry",
		Long: `Push all images of a bundle, for all its architectures, into a private registry,
and print them with their digests, which are those of the bundle. What is there
already is not sent again, so a push that was cut short is finished by the next.

Without a user the credentials are those of "docker login".`,
		Example: `  kube-bootstrap offline push registry.example.com:5000/k8s --bundle kube.tar.zst
  KUBE_BOOTSTRAP_REGISTRY_PASSWORD=... kube-bootstrap offline push registry.example.com:5000 \
      --registry-username me --registry-ca ca.crt`,
		Args: cobra.MaximumNArgs(1),
	}
	p.addSettings(c, config.Push)
	p.addTimeline(c)
	format := addOutput(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkOutput(*format); err != nil {
			return err
		}
		cfg, err := p.loadRegistry(c, config.Push, args)
		if err != nil {
			return err
		}
		if cfg.Registry.Address == "" {
			return &usageError{errors.New("say where to push to: REGISTRY[/PREFIX], --registry or REG_PREFIX")}
		}
		return p.push(c.Context(), *format, cfg)
	}
	return c
}

// loadRegistry is load, with the registry that stands as the argument.
func (p *program) loadRegistry(c *cobra.Command, verb config.Verb, args []string) (config.Config, error) {
	if len(args) == 1 {
		if err := c.Flags().Set("registry", args[0]); err != nil {
			return config.Config{}, &usageError{err}
		}
	}
	cfg, _, err := p.load(c.Flags(), verb, "")
	return cfg, err
}

func (p *program) push(ctx context.Context, format string, cfg config.Config) error {
	to, err := registry.New(ctx, cfg.Registry)
	if err != nil {
		return &usageError{err}
	}
	path := cfg.Bundle
	if path == "" {
		v, err := versionsOf(cfg)
		if err != nil {
			return err
		}
		path = offline.DefaultPath(v, runtime.GOARCH)
	}
	var pushed []bundle.Pushed
	err = p.do(ctx, "push to "+to.Address, func(ctx context.Context) (err error) {
		pushed, err = offline.Push(ctx, path, to, bundle.SignedBy(cfg.VerifyKey), bundle.WithBase(cfg.BundleBase))
		return err
	})
	if err != nil {
		return &firmError{err}
	}
	return p.print(format, pushed, func(w io.Writer) {
		for _, one := range pushed {
			fmt.Fprintln(w, one.Ref+"@"+one.Digest.String())
		}
	})
}
