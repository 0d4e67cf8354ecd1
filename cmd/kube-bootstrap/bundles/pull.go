package bundles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/source"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/fetch"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

type pullFlags struct {
	offline.PullOptions
	fetch          fetch.Options
	archs, mirrors []string
	output         *fileOutput
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
	source.AddFlags(c.Flags(), config.Sign)
	con.AddRecords(c.Flags())
	f := pullFlags{fetch: fetch.Options{Cache: cache.Dir()}}
	flags := c.Flags()
	flags.StringSliceVar(&f.archs, "arch", nil, `architectures to pull, comma separated, or "all" that are official (default this machine's)`)
	flags.StringArrayVar(&f.mirrors, "registry-mirror", nil, "where to find a registry's images, REGISTRY=[http://]HOST[/PREFIX]; for "+strings.Join(image.Registries, ", ")+"; may be repeated")
	flags.StringVar(&f.Sites.Kubernetes, "download-mirror", image.OfficialSites.Kubernetes, "where to find the release files of Kubernetes")
	flags.StringVar(&f.Sites.CNI, "cni-mirror", image.OfficialSites.CNI, "where to find the releases of the CNI plugins")
	flags.StringVar(&f.fetch.CAFile, "ca-file", "", "file with certificates of authorities to trust, beside the system's")
	flags.DurationVar(&f.fetch.Stall, "stall-timeout", fetch.DefaultStall, "how long a server may send nothing before the request is repeated")
	flags.StringVar(&f.Base, "base", "", "bundle whose contents are left out; hosts need both")
	flags.BoolVar(&f.Quick, "quick", false, "compress less: seconds instead of minutes, for a bundle that is not carried far")
	dryRun := flags.Bool("dry-run", false, "list what would be pulled; needs no network")
	f.output = addFileOutput(c)
	_ = c.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(append([]string{"all"}, image.OfficialArchs...), cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := settings.FromEnv(con.Env, c); err != nil {
			return err
		}
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
	var errs [6]error
	o.Versions, errs[0] = Versions(cfg)
	o.Archs, errs[1] = pullArchs(f.archs)
	f.fetch.Mirrors, err = fetch.ParseMirrors(f.mirrors, image.Registries)
	errs[2] = in("--registry-mirror", err)
	errs[3] = in("--download-mirror", f.use(&o.Sites.Kubernetes))
	errs[4] = in("--cni-mirror", f.use(&o.Sites.CNI))
	if f.fetch.Stall <= 0 {
		errs[5] = fmt.Errorf("--stall-timeout %s: must be more than nothing, such as 30s", f.fetch.Stall)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return o, exit.Usage(err)
	}
	o.Client, err = fetch.New(f.fetch)
	return o, exit.Firm(err)
}

// in says which flag an error is about.
func in(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", flag, err)
}

// use checks the URL of a site, and allows plain HTTP if that is its scheme.
func (f *pullFlags) use(site *string) error {
	if strings.Contains(*site, "@") { // told without the text, which holds a password
		return errors.New("it has a user in it, which others could read")
	}
	u, err := url.Parse(*site)
	switch {
	case err != nil:
		return err
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return fmt.Errorf("%q: must begin with https:// and a host (or http://, which is not encrypted)", *site)
	case u.Scheme == "http":
		f.fetch.Plain = append(f.fetch.Plain, u.Host)
	}
	*site = strings.TrimSuffix(*site, "/")
	return nil
}

func pullArchs(given []string) ([]string, error) {
	if slices.Contains(given, "all") {
		return slices.Clone(image.OfficialArchs), nil
	}
	names, err := archs(given)
	for _, name := range names {
		if !slices.Contains(image.OfficialArchs, name) {
			err = errors.Join(err, fmt.Errorf("--arch %s: upstream publishes no Kubernetes for it; build it from source: `kube-bootstrap offline build --arch %[1]s`", name))
		}
	}
	return names, err
}

func listOrigins(out io.Writer, format output.Format, o offline.PullOptions) error {
	all := offline.PullFrom(o)
	return format.Print(out, "Source", all, func(w io.Writer) {
		output.Row(w, "NAME", "ARCH", "FROM")
		for _, from := range all {
			output.Row(w, from.Name, from.Arch, from.Where())
		}
	})
}

func pullBundle(ctx context.Context, con *console.Console, o offline.PullOptions, format output.Format) error {
	plan, path, err := offline.Pull(o)
	if err != nil {
		return err
	}
	err = con.Run(ctx, plan)
	switch {
	case err == nil:
		return printBundle(con.Out, format, bundleResult{path, o.Versions, o.Archs})
	case len(step.Problems(err)) > 0:
		return exit.Firm(err)
	}
	return exit.Resume(err, "run the same command again to go on: what was fetched is kept")
}
