// Package output prints data as a table, as names, as JSON, as YAML or by a template.
package output

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// Format is a way to print data: one of Formats, jsonpath=TEMPLATE or go-template=TEMPLATE.
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

// Print writes an object of a kind or a list of them. table writes it for people, as rows.
func (f Format) Print(out io.Writer, kind string, data any, table func(io.Writer)) error {
	if err := f.check(Formats, Words); err != nil {
		return err
	}
	if f == Table {
		w := tabwriter.NewWriter(printable{out}, 0, 0, 3, ' ', 0)
		table(w)
		return w.Flush()
	}
	text, err := typed(kind, data)
	if err != nil {
		return err
	}
	return f.printJSON(out, text)
}

// printable makes what is written progress.Printable. A tabwriter writes whole characters.
type printable struct{ out io.Writer }

func (p printable) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.out, progress.Printable(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

func (f Format) printJSON(out io.Writer, text json.RawMessage) error {
	if execute, err := f.template(); execute != nil {
		var fields any
		if err = errors.Join(err, json.Unmarshal(text, &fields)); err == nil {
			err = execute(out, fields)
		}
		if err == nil {
			_, err = io.WriteString(out, "\n")
		}
		return err
	}
	if f == "yaml" {
		text, err := yaml.JSONToYAML(text)
		return Write(out, text, err)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(text)
}

// Write writes data, unless it could not be made because of err.
func Write(out io.Writer, data []byte, err error) error {
	if err == nil {
		_, err = out.Write(data)
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

// typeMeta says what an object is, as the first fields of objects of Kubernetes do.
type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// typed returns data as JSON with its type: an object begins with apiVersion and
// kind, and the objects of a list are its items, as in lists of Kubernetes.
func typed(kind string, data any) (json.RawMessage, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	if text[0] == '{' {
		return withType(kind, text)
	}
	if string(text) == "null" {
		text = []byte("[]") // a nil slice is an empty list
	}
	return json.Marshal(struct {
		typeMeta
		Items json.RawMessage `json:"items"`
	}{typeMeta{config.APIVersion, kind + "List"}, text})
}

func withType(kind string, object []byte) (json.RawMessage, error) {
	begin, err := json.Marshal(typeMeta{config.APIVersion, kind})
	if string(object) == "{}" {
		return begin, err
	}
	return slices.Concat(begin[:len(begin)-1], []byte(","), object[1:]), err
}

// The beginnings of formats with a template, which refers to the fields of json.
const (
	jsonPath   = "jsonpath="
	goTemplate = "go-template="
)

// template returns the function that executes the template of the format; nil if it has none.
func (f Format) template() (func(out io.Writer, fields any) error, error) {
	if text, ok := strings.CutPrefix(string(f), jsonPath); ok {
		t := jsonpath.New("output")
		err := t.Parse(text)
		return t.Execute, err
	}
	if text, ok := strings.CutPrefix(string(f), goTemplate); ok {
		t, err := template.New("output").Parse(text)
		return t.Execute, err
	}
	return nil, nil
}

// IsTemplate reports whether text names a format with a template, which may be invalid.
func IsTemplate(text string) bool {
	return strings.HasPrefix(text, jsonPath) || strings.HasPrefix(text, goTemplate)
}

// The ways to print a list that are no way to print one object.
const (
	wide = "wide" // the table with all its columns
	name = "name" // one name per line
)

const listWords = "table, json, yaml, wide, name, jsonpath=TEMPLATE or go-template=TEMPLATE"

var listFormats = append(slices.Clone(Formats), wide, name)

// ListCommand makes c print, with -o, the objects of a kind that list returns.
func ListCommand[T any](c *cobra.Command, out io.Writer, kind string, columns []Column[T],
	list func(context.Context) ([]T, error),
) *cobra.Command {
	format := addFlag(c, listFormats, listWords)
	c.RunE = func(c *cobra.Command, _ []string) error {
		all, err := list(c.Context())
		if err != nil {
			return err
		}
		return printList(*format, out, kind, all, columns)
	}
	return c
}

// Column is a column of the table of a list.
type Column[T any] struct {
	Head string
	Cell func(T) string
	Wide bool // shown with -o wide only
}

// printList writes a list of objects of a kind. The first column is the name of an object.
func printList[T any](f Format, out io.Writer, kind string, all []T, columns []Column[T]) error {
	head := true
	switch f {
	case name:
		columns, head = columns[:1], false
	case Table:
		columns = slices.DeleteFunc(slices.Clone(columns), func(c Column[T]) bool { return c.Wide })
	case wide:
	default:
		return f.Print(out, kind, all, nil)
	}
	return Table.Print(out, kind, all, func(w io.Writer) {
		if head {
			Row(w, cells(columns, func(c Column[T]) string { return c.Head })...)
		}
		for _, one := range all {
			Row(w, cells(columns, func(c Column[T]) string { return c.Cell(one) })...)
		}
	})
}

func cells[T any](columns []Column[T], cell func(Column[T]) string) (row []string) {
	for _, c := range columns {
		row = append(row, cell(c))
	}
	return row
}
