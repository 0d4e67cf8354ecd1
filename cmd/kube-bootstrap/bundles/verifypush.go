package bundles

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/artifact"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline/programs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

type verifying struct {
	path, base, key string
	want            bundle.Wanted
}

func verifyCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify all digests of a bundle and list missing content",
		Long: `Read a whole bundle, compare everything in it with its digests, and say what it
holds and what a host would look for in vain.`,
		Example: `  kube-bootstrap offline verify kube.tar.zst
  kube-bootstrap offline verify kube.tar.zst --arch arm64,arm --kubernetes-version 1.36.3
  kube-bootstrap offline verify update.tar.zst --base kube.tar.zst --verify-key our.pub`,
	}
	var v verifying
	format := output.AddFlag(c)
	c.Flags().StringSliceVar(&v.want.Archs, "arch", nil,
		"architectures that must be complete, comma separated (default those of the bundle)")
	c.Flags().StringVar(&v.want.Kubernetes, "kubernetes-version", "",
		"Kubernetes version that it must hold (default any)")
	c.Flags().StringVar(&v.base, "base", "", "bundle that this one was built on")
	c.Flags().StringVar(&v.key, "verify-key", "", "file of the ed25519 public key that it must be signed by")
	_ = c.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(config.Arches, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		v.path = args[0]
		if err := v.check(); err != nil {
			return err
		}
		return verify(c.Context(), con, *format, v)
	}
	return c
}

func (v *verifying) check() (err error) {
	if v.want.Archs, err = archs(v.want.Archs); err != nil || v.want.Kubernetes == "" {
		return err
	}
	versions, err := image.For(v.want.Kubernetes, image.Versions{})
	if err != nil {
		return exit.Usage(fmt.Errorf("--kubernetes-version: %w", err))
	}
	v.want.Kubernetes = versions.Kubernetes
	return nil
}

func verify(ctx context.Context, con *console.Console, format output.Format, v verifying) error {
	var report bundle.Report
	err := con.Do(ctx, "verify", "verify "+v.path, func(ctx context.Context) error {
		b, err := bundle.Open(v.path, bundle.SignedBy(v.key), bundle.WithBase(v.base))
		if err != nil {
			return err
		}
		defer b.Close()
		report = b.Report(v.want)
		return b.Verify(ctx)
	})
	if err != nil {
		return err
	}
	if err := format.Print(con.Out, "BundleReport", report,
		func(w io.Writer) { printContents(w, report) }); err != nil {
		return err
	}
	if len(report.Missing) > 0 {
		return fmt.Errorf("bundle %s is not damaged, but lacks: %s", v.path, strings.Join(report.Missing, "; "))
	}
	return nil
}

func printContents(w io.Writer, r bundle.Report) {
	output.Row(w, "Kubernetes", r.Versions.Kubernetes)
	output.Row(w, "architectures", strings.Join(r.Archs, ", "))
	for _, ref := range r.Images {
		output.Row(w, "image", ref)
	}
	output.Row(w, "size", fmt.Sprintf("%d MB, unpacked %d MB in %d blobs", r.CompressedSize/1e6, r.Size/1e6, r.Blobs))
	output.Row(w, "signed by", cmp.Or(r.Signer, "nobody"))
	if r.Base != nil {
		output.Row(w, "base", "the bundle of Kubernetes "+r.Base.Kubernetes+" with the manifest "+
			r.Base.Manifest.String())
	}
	if len(r.Missing) == 0 {
		output.Row(w, "verdict", "whole")
	}
	for _, what := range r.Missing {
		output.Row(w, "missing", what)
	}
}

func pushCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "push [REGISTRY[/PREFIX]]",
		Short: "Push a bundle into a private registry",
		Long: `Push all images of a bundle, for all its architectures, into a private registry,
and print them with their digests in the registry. These differ from the digests in
the bundle, because a registry gets each layer compressed; the image IDs are the
same. What is there already is not sent again, so the next push finishes a push
that was cut short.

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
	err = con.Do(ctx, "push", "push to "+to.Address, func(ctx context.Context) (err error) {
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

// serveProgramCommand serves this program to other machines while `cluster up` needs it.
func serveProgramCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "serve-program ADDRESS", Hidden: true,
		Short: "Serve this program to other machines, until the input ends",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			addr, err := netip.ParseAddr(args[0])
			if err != nil {
				return exit.Usage(err)
			}
			return programs.Serve(c.Context(), addr, c.InOrStdin(), con.Out)
		},
	}
}
