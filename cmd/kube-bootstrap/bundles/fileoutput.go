package bundles

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// addFileOutput adds the flags --to and -o to a command that writes a bundle and
// prints its path. -o is a file, as in docker save, or a format.
func addFileOutput(c *cobra.Command) *fileOutput {
	o := &fileOutput{format: output.Table}
	c.Flags().StringVar(&o.to, "to", "", "file to write the bundle into (default in the cache)")
	c.Flags().VarP(o, "output", "o", "file to write the bundle into, as --to, or how to print: "+output.Words)
	_ = c.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
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

// bundleResult is what a command prints that wrote a bundle.
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
