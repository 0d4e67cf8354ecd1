package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// addOutput gives a command that prints data its -o flag.
func addOutput(c *cobra.Command) *string {
	format := c.Flags().StringP("output", "o", "table", "how to print: table, json or yaml")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return format
}

// checkOutput refuses a format there is not, before anything is done.
func checkOutput(format string) error {
	switch format {
	case "table", "json", "yaml":
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
