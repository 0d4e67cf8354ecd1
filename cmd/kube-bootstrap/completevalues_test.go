package main

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFilesAreOfferedForFilesAlone asks completion for the value of every flag
// that has one.
func TestFilesAreOfferedForFilesAlone(t *testing.T) {
	seen := 0
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, completed := c.GetFlagCompletionFunc(f.Name)
			_, file := fileFlags[f.Name]
			if f.NoOptDefVal == "" && completed == file {
				t.Errorf("%s --%s: takes a file: %v, has a completion of its own: %v", c.CommandPath(), f.Name, file, completed)
			}
			seen++
		})
		for _, child := range c.Commands() {
			look(child)
		}
	}
	look(testRoot())
	if seen < 200 {
		t.Errorf("only %d flags were found", seen)
	}
}
