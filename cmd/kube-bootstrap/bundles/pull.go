package bundles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/source"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

type pullFlags struct {
	offline.PullOptions
	archs  []string
	output *fileOutput
}

func pullCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "pull",
		Short: "Pull the official images and files into a bundle and print its path",
		Long: `Pull the official images, and the official files of what is in no image, into
one bundle, for one architecture or several, and print its path. Everything is
checked against its digest. What was fetched is kept, so that a run that was cut
short goes on where it ended.

Proxies are taken from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, credentials from
what "docker login" left. --dry-run lists where everything comes from, for those
who fill a mirror.`,
		Example: `  kube-bootstrap offline pull -o kube.tar.zst --arch amd64,arm64
  kube-bootstrap offline pull --registry-mirror registry.k8s.io=mirror.example.com/k8s --registry-mirror ghcr.io=mirror.example.com/ghcr \
    --download-mirror https://files.example.com/k8s --cni-mirror https://files.example.com/cni
  kube-bootstrap offline pull --dry-run --kubernetes-version 1.35.4`,
	}
	settings.AddFlags(c, config.Offline)
	source.AddFlags(c.Flags(), config.Sign|config.Pull)
	con.AddRecords(c.Flags())
	var f pullFlags
	flags := c.Flags()
	flags.StringSliceVar(&f.archs, "arch", nil,
		`architectures to pull, comma separated, or "all" that are official (default this machine's)`)
	flags.StringVar(&f.Base, "base", "", "bundle whose contents are left out; hosts need both")
	addPrograms(c, con, &f.Programs)
	flags.BoolVar(&f.Quick, "quick", false,
		"compress less: seconds instead of minutes, for a bundle that is not carried far")
	dryRun := flags.Bool("dry-run", false, "list what would be pulled; needs no network")
	f.output = addFileOutput(c)
	_ = c.RegisterFlagCompletionFunc("arch",
		cobra.FixedCompletions(append([]string{"all"}, image.OfficialArchs...), cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, _ []string) error {
		o, err := pullOptions(con.Env, c, f)
		if err != nil {
			return err
		}
		if *dryRun {
			return listOrigins(con.Out, f.output.format, o)
		}
		return pullBundle(c.Context(), con, o, f.output.format)
	}
	return c
}

// pullOptions checks everything that was said before the network is touched.
func pullOptions(env func(string) string, c *cobra.Command, f pullFlags) (offline.PullOptions, error) {
	o := f.PullOptions
	cfg, _, err := settings.Load(env, c.Flags(), config.Offline, "")
	if err != nil {
		return o, err
	}
	o.SignKey, o.Output = cfg.SignKey, f.output.to
	var errs [3]error
	o.Versions, errs[0] = Versions(cfg)
	o.Archs, errs[1] = pullArchs(f.archs)
	errs[2] = otherMirrors(cfg.RegistryMirrors)
	if err := errors.Join(errs[:]...); err != nil {
		return o, exit.Usage(err)
	}
	o, err = o.From(cfg)
	return o, exit.Firm(err)
}

// otherMirrors returns an error for a mirror of a registry from which nothing is pulled.
func otherMirrors(all []mirror.Mirror) error {
	for _, m := range all {
		if !slices.Contains(image.Registries, m.Of) {
			return fmt.Errorf("registryMirrors: no image comes from %q; the registry must be one of %s",
				m.Of, strings.Join(image.Registries, ", "))
		}
	}
	return nil
}

func pullArchs(given []string) ([]string, error) {
	if slices.Contains(given, "all") {
		return slices.Clone(image.OfficialArchs), nil
	}
	names, err := archs(given)
	for _, name := range names {
		if !slices.Contains(image.OfficialArchs, name) {
			err = errors.Join(err,
				fmt.Errorf("--arch %s: upstream publishes no Kubernetes for it; build it from source: "+
					"`kube-bootstrap offline build --arch %[1]s`", name))
		}
	}
	return names, err
}

func listOrigins(out io.Writer, format output.Format, o offline.PullOptions) error {
	all := o.Origins()
	return format.Print(out, "Source", all, func(w io.Writer) {
		output.Row(w, "NAME", "ARCH", "FROM")
		for _, from := range all {
			output.Row(w, from.Name, from.Arch, from.Where())
		}
	})
}

func pullBundle(ctx context.Context, con *console.Console, o offline.PullOptions, format output.Format) error {
	p, err := offline.NewPull(o)
	if err != nil {
		return err
	}
	err = con.Run(ctx, p.Plan())
	switch {
	case err == nil:
		return printBundle(con.Out, format, bundleResult{p.Output, o.Versions, o.Archs})
	case len(step.Problems(err)) > 0:
		return exit.Firm(err)
	}
	return exit.Resume(err, "run the same command again to go on: what was fetched is kept")
}
