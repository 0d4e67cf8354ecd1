// Package output prints data as a table, as JSON, as YAML or by a template.
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

// AddFlag gives a command that prints data its -o flag.
func AddFlag(c *cobra.Command) *Format {
	format := Table
	c.Flags().StringVarP((*string)(&format), "output", "o", string(Table), "how to print: "+Words)
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(Formats, cobra.ShellCompDirectiveNoFileComp))
	return &format
}

// Check refuses an unknown format, before anything is done.
func (f Format) Check() error {
	if slices.Contains(Formats, string(f)) {
		return nil
	}
	if !IsTemplate(string(f)) {
		return exit.Usage(fmt.Errorf("--output %q: must be %s", f, Words))
	}
	if _, err := f.template(); err != nil {
		return exit.Usage(fmt.Errorf("--output %q: %w", f, err))
	}
	return nil
}

// Print writes data to out. table writes it for people, as rows.
func (f Format) Print(out io.Writer, data any, table func(io.Writer)) error {
	if err := f.Check(); err != nil {
		return err
	}
	if template, err := f.template(); template != nil {
		return errors.Join(err, template.run(out, data))
	}
	var text []byte
	var err error
	switch f {
	case Table:
		w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
		table(w)
		return w.Flush()
	case "json":
		text, err = json.MarshalIndent(data, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(data)
	}
	if err == nil {
		_, err = out.Write(text)
	}
	return err
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
