package bundles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/artifact"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

func pushCommand(con *console.Console) *cobra.Command {
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
	}
	settings.AddFlags(c, config.Push)
	con.AddRecords(c.Flags())
	format := output.AddFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := settings.LoadRegistry(con.Env, c, config.Push, args)
		if err != nil {
			return err
		}
		if cfg.Registry.Address == "" {
			return exit.Usage(errors.New("say where to push to: REGISTRY[/PREFIX], --registry or REG_PREFIX"))
		}
		return push(c.Context(), con, *format, cfg)
	}
	return c
}

func push(ctx context.Context, con *console.Console, format output.Format, cfg config.Config) error {
	to, err := registry.New(ctx, cfg.Registry)
	if err != nil {
		return exit.Usage(err)
	}
	path := cfg.Bundle
	if path == "" {
		v, err := Versions(cfg)
		if err != nil {
			return err
		}
		path = offline.DefaultPath(v, runtime.GOARCH)
	}
	var pushed []artifact.Pushed
	err = con.Do(ctx, "push to "+to.Address, func(ctx context.Context) (err error) {
		pushed, err = offline.Push(ctx, path, to, bundle.SignedBy(cfg.VerifyKey), bundle.WithBase(cfg.BundleBase))
		return err
	})
	if err != nil {
		return exit.Firm(err)
	}
	return format.Print(con.Out, "PushedImage", pushed, func(w io.Writer) {
		for _, one := range pushed {
			fmt.Fprintln(w, one.Ref+"@"+one.Digest.String())
		}
	})
}

// serveImagesCommand serves images during the tests of `cluster e2e`: some
// tests pull an image that every node already has.
func serveImagesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve-images SETTINGS", Hidden: true,
		Short: "Serve images of this host's containerd to other hosts",
		RunE: func(c *cobra.Command, args []string) error {
			var s registry.Served
			if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
				return exit.Usage(fmt.Errorf("settings: %w", err))
			}
			return registry.Serve(c.Context(), s)
		},
	}
}
