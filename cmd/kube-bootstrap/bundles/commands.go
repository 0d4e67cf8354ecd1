// Package bundles has the commands about bundles of images, for hosts without a
// network.
package bundles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/source"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline/programs"
)

// Commands returns the command "offline" and hidden ones. load is its command
// that loads the images into the stores of this host.
func Commands(con *console.Console, load *cobra.Command) []*cobra.Command {
	return []*cobra.Command{
		command.Parent("offline", "Bundles of images, for hosts without a network",
			listCommand(con), pullCommand(con), buildCommand(con), verifyCommand(con), pushCommand(con), load),
		serveImagesCommand(), serveProgramCommand(con), imageArchiveCommand(con),
	}
}

// versions returns the settings of a command, and the versions that they ask for.
func versions(env func(string) string, c *cobra.Command) (config.Config, image.Versions, error) {
	cfg, _, err := settings.Load(env, c.Flags(), config.Offline, "")
	if err != nil {
		return cfg, image.Versions{}, err
	}
	v, err := Versions(cfg)
	return cfg, v, err
}

func listCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "Print the images that a cluster needs, one name a line",
		Long: `Print the images that a cluster needs, one name a line; with a prefix, as they
are called in a private registry. They are those of a bundle that was built from
source, or, with --bundle, those of that bundle.`,
		Example: `  kube-bootstrap offline list
  kube-bootstrap offline list --bundle kube.tar.zst
  kube-bootstrap offline list registry.example.com:5000 --kubernetes-version 1.35.4`,
	}
	settings.AddFlags(c, config.Offline)
	format := output.AddFlag(c)
	path := c.Flags().String("bundle", "", "list what this bundle holds")
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, v, err := versions(con.Env, c)
		if err != nil {
			return err
		}
		holds := func(image.Image) bool { return true }
		if *path != "" {
			b, err := bundle.Open(*path)
			if err != nil {
				return err
			}
			defer b.Close()
			v, holds = b.Manifest.Versions, func(i image.Image) bool { return b.Manifest.Holds(i.Ref) }
		}
		prefix := strings.Join(append(args, cfg.Registry.Address)[:1], "")
		all := image.References(image.CatalogueOf(v, prefix, holds))
		return format.Print(con.Out, "Image", all, func(w io.Writer) { fmt.Fprintln(w, strings.Join(all, "\n")) })
	}
	return c
}

func buildCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "build",
		Short: "Build the images from source into a bundle and print its path",
		Long: `Build the images of a cluster from source (Go modules at pinned versions) into
one bundle, for one architecture or several, and print its path. What was built
is cached, so that a second build of the same takes seconds.`,
		Example: `  kube-bootstrap offline build
  kube-bootstrap offline build --arch amd64,arm64 -o kube.tar.zst
  kube-bootstrap offline build --k8s-dir ~/kubernetes
  kube-bootstrap offline build --kubernetes-version 1.36.3 --base kube-1.36.1.tar.zst --to update.tar.zst`,
	}
	settings.AddFlags(c, config.Offline)
	source.AddFlags(c.Flags(), config.Build|config.Sign)
	con.AddRecords(c.Flags())
	var o offline.BuildOptions
	c.Flags().StringSliceVar(&o.Archs, "arch", nil,
		"architectures to build for, comma separated (default this machine's): "+strings.Join(config.Arches, ", "))
	output := addFileOutput(c)
	c.Flags().StringSliceVar(&o.Images, "images", nil,
		"only these images, comma separated (default all that a cluster needs): etcd, flannel, hyperkube, "+
			"coredns, pause")
	c.Flags().StringVar(&o.BaseImage, "base-image", "",
		"image to take the userland from, instead of Debian packages: a reference, or a file of docker save")
	c.Flags().StringVar(&o.Base, "base", "", "bundle whose contents are left out; hosts need both")
	addPrograms(c, con, &o.Programs)
	c.Flags().BoolVar(&o.Quick, "quick", false,
		"compress in seconds instead of minutes, for use on this machine: the bundle is half as large again")
	_ = c.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(config.Arches, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, _ []string) error {
		var err error
		if o.Archs, err = archs(o.Archs); err != nil {
			return err
		}
		cfg, v, err := versions(con.Env, c)
		if err != nil {
			return err
		}
		o.Versions = v
		if o.K8sDir, err = Checkout(cfg, v); err != nil {
			return exit.Firm(err)
		}
		o.Output, o.SignKey = output.to, cfg.SignKey
		return buildBundle(c.Context(), con, output.format, o)
	}
	return c
}

// addPrograms adds the flag that puts kube-bootstrap itself into a bundle.
func addPrograms(c *cobra.Command, con *console.Console, into *programs.Source) {
	into.Version = con.Version
	c.Flags().StringVar(&into.Dir, "programs", "",
		"put kube-bootstrap itself into the bundle, for \"cluster up\" on machines: a directory with "+
			"kube-bootstrap-linux-ARCH")
}

// archs are Go's names for what --arch was given, each once, in order.
func archs(given []string) ([]string, error) {
	var names []string
	for _, arch := range given {
		name, err := image.Arch(arch)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--arch: %w", err))
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func buildBundle(ctx context.Context, con *console.Console, format output.Format, o offline.BuildOptions) error {
	b, err := offline.NewBuild(ctx, o)
	if err != nil {
		return err
	}
	SayEffort(con.Say, b.Effort)
	if err := con.Run(ctx, b.Plan); err != nil {
		return err
	}
	return printBundle(con.Out, format, bundleResult{b.Bundle, o.Versions, o.Archs})
}

// addFileOutput adds the flags --to and -o to a command that writes a bundle and
// prints its path. -o is a file, as in docker save, or a format.
func addFileOutput(c *cobra.Command) *fileOutput {
	o := &fileOutput{format: output.Table}
	c.Flags().StringVar(&o.to, "to", "", "file to write the bundle into (default in the cache)")
	c.Flags().VarP(o, "output", "o", "file to write the bundle into, as --to, or how to print: "+output.Words)
	_ = c.RegisterFlagCompletionFunc("output",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return output.Formats, cobra.ShellCompDirectiveDefault // and files
		})
	return o
}

type fileOutput struct {
	to     string
	format output.Format
}

// Set accepts a word that is not a format as a file name only if it looks like a
// path: a misspelt format must not create a file.
func (o *fileOutput) Set(text string) error {
	switch {
	case slices.Contains(output.Formats, text), output.IsTemplate(text):
		o.format = output.Format(text)
	case strings.ContainsAny(text, "./"):
		o.to = text
	default:
		return errors.New("must be " + output.Words + ", or a file like kube.tar.zst; ./" + text + " is a file too")
	}
	return nil
}

func (o *fileOutput) String() string { return string(o.format) }

// Type is what help calls the value.
func (o *fileOutput) Type() string { return "file|format" }

type bundleResult struct {
	Path     string         `json:"path"`
	Versions image.Versions `json:"versions"`
	Archs    []string       `json:"archs"`
}

func printBundle(out io.Writer, format output.Format, b bundleResult) error {
	if len(b.Archs) == 0 {
		b.Archs = []string{runtime.GOARCH}
	}
	return format.Print(out, "Bundle", b, func(w io.Writer) { fmt.Fprintln(w, b.Path) })
}
