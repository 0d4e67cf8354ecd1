package main

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
)

// TestFilesAreOfferedForFilesAlone asks completion for the value of every flag
// that has one.
func TestFilesAreOfferedForFilesAlone(t *testing.T) {
	seen := 0
	command.Each(testRoot(), func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, completed := c.GetFlagCompletionFunc(f.Name)
			_, file := fileFlags[f.Name]
			if f.NoOptDefVal == "" && completed == file {
				t.Errorf("%s --%s: takes a file: %v, has a completion of its own: %v", c.CommandPath(), f.Name,
					file, completed)
			}
			seen++
		})
	})
	if seen < 200 {
		t.Errorf("only %d flags were found", seen)
	}
}
