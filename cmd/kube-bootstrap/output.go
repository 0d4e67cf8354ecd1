package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// formats are the ways to print data.
var formats = []string{"table", "json", "yaml"}

// addOutput gives a command that prints data its -o flag.
func addOutput(c *cobra.Command) *string {
	format := c.Flags().StringP("output", "o", "table", "how to print: table, json or yaml")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return format
}

// addFileOutput gives a command that writes a bundle and prints where it is its
// --to and -o flags: -o takes the file, as in docker save, or how to print.
func addFileOutput(c *cobra.Command) *fileOutput {
	o := &fileOutput{format: "table"}
	c.Flags().StringVar(&o.to, "to", "", "file to write the bundle into (default in the cache)")
	c.Flags().VarP(o, "output", "o", "file to write the bundle into, as --to, or how to print: table, json or yaml")
	_ = c.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return formats, cobra.ShellCompDirectiveDefault // and files
	})
	return o
}

type fileOutput struct{ to, format string }

// Set accepts a word that is not a format as a file name only if it looks like a
// path: a misspelt format must not create a file.
func (o *fileOutput) Set(text string) error {
	switch {
	case slices.Contains(formats, text):
		o.format = text
	case strings.ContainsAny(text, "./"):
		o.to = text
	default:
		return errors.New("must be table, json or yaml, or a file like kube.tar.zst; ./" + text + " is a file too")
	}
	return nil
}

func (o *fileOutput) String() string { return o.format }

// Type is what help calls the value.
func (o *fileOutput) Type() string { return "file|format" }

// bundleResult is what a command prints that wrote a bundle.
type bundleResult struct {
	Path     string         `json:"path"`
	Versions image.Versions `json:"versions"`
	Archs    []string       `json:"archs"`
}

func (p *program) printBundle(format string, b bundleResult) error {
	if len(b.Archs) == 0 {
		b.Archs = []string{runtime.GOARCH}
	}
	return p.print(format, b, func(w io.Writer) { fmt.Fprintln(w, b.Path) })
}

// checkOutput refuses a format there is not, before anything is done.
func checkOutput(format string) error {
	if slices.Contains(formats, format) {
		return nil
	}
	return &usageError{fmt.Errorf("--output %q: must be table, json or yaml", format)}
}

// print writes data to stdout; table writes it for people.
func (p *program) print(format string, data any, table func(io.Writer)) error {
	if err := checkOutput(format); err != nil {
		return err
	}
	var text []byte
	var err error
	switch format {
	case "table":
		w := tabwriter.NewWriter(p.out, 0, 0, 3, ' ', 0)
		table(w)
		return w.Flush()
	case "json":
		text, err = json.MarshalIndent(data, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(data)
	}
	if err == nil {
		_, err = p.out.Write(text)
	}
	return err
}

func cells(w io.Writer, words ...string) { fmt.Fprintln(w, strings.Join(words, "\t")) }
