// Package output prints data as a table, as names, as JSON, as YAML or by a template.
package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
)

// Format is a way to print data: one of Formats, or jsonpath=TEMPLATE or
// go-template=TEMPLATE.
type Format string

// Table is the format for people.
const Table Format = "table"

// Formats are the ways to print data without a template.
var Formats = []string{string(Table), "json", "yaml"}

// Words lists all formats in a sentence.
const Words = "table, json, yaml, jsonpath=TEMPLATE or go-template=TEMPLATE"

// AddFlag gives a command that prints data its -o flag. An unknown format is
// refused before the command runs, together with what is refused by its PreRunE.
func AddFlag(c *cobra.Command) *Format { return addFlag(c, Formats, Words) }

func addFlag(c *cobra.Command, formats []string, words string) *Format {
	format := Table
	c.Flags().StringVarP((*string)(&format), "output", "o", string(Table), "how to print: "+words)
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	prepare := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) (err error) {
		if prepare != nil {
			err = prepare(c, args)
		}
		return errors.Join(err, format.check(formats, words))
	}
	return &format
}

// Check refuses an unknown format, before anything is done.
func (f Format) Check() error { return f.check(Formats, Words) }

func (f Format) check(formats []string, words string) error {
	if slices.Contains(formats, string(f)) {
		return nil
	}
	if !IsTemplate(string(f)) {
		return exit.Usage(fmt.Errorf("--output %q: must be %s", f, words))
	}
	if _, err := f.template(); err != nil {
		return exit.Usage(fmt.Errorf("--output %q: %w", f, err))
	}
	return nil
}

// Print writes data, an object of a kind or a list of them, to out. table writes
// it for people, as rows.
func (f Format) Print(out io.Writer, kind string, data any, table func(io.Writer)) error {
	if err := f.Check(); err != nil {
		return err
	}
	if f == Table {
		w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
		table(w)
		return w.Flush()
	}
	text, err := typed(kind, data)
	if err != nil {
		return err
	}
	return f.printJSON(out, text)
}

func (f Format) printJSON(out io.Writer, text json.RawMessage) error {
	if template, err := f.template(); template != nil {
		return errors.Join(err, template.run(out, text))
	}
	if f == "yaml" {
		text, err := yaml.JSONToYAML(text)
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(text)
}

// Row writes one row of a table.
func Row(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }

// Fields writes the names and values of fields, one row each, without the empty ones.
func Fields(w io.Writer, fields [][2]string) {
	for _, field := range fields {
		if field[1] != "" {
			Row(w, field[0], field[1])
		}
	}
}
