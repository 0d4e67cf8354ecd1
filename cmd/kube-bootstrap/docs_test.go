package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/manual"
)

func testRoot() *cobra.Command {
	return newRoot(&console.Console{Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }}, nil)
}

// allCommands returns the root of all commands, those of cobra included.
func allCommands() *cobra.Command {
	root := testRoot()
	root.InitDefaultCompletionCmd()
	return root
}

func TestDocsAreUpToDate(t *testing.T) {
	pages, err := manual.Pages(testRoot())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil || string(got) != want {
			t.Errorf("docs/%s is not what the program says (%v): run `make fix`", name, err)
		}
	}
}

func TestEveryCommandHasHelpAndExample(t *testing.T) {
	command.Each(testRoot(), func(c *cobra.Command) {
		if !c.Hidden && (c.Short == "" || !c.HasSubCommands() && c.Example == "") {
			t.Errorf("%s: no help or no example", c.CommandPath())
		}
	})
}

// pflag shows what a help text has in backquotes as the flag's argument.
func TestFlagsShowOneWordAsArgument(t *testing.T) {
	command.Each(testRoot(), func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if argument, _ := pflag.UnquoteUsage(f); strings.Contains(argument, " ") {
				t.Errorf("%s --%s: help shows the argument %q", c.CommandPath(), f.Name, argument)
			}
		})
	})
}

func TestExitCodesAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"0", "1", "2", "3", "4", "5", "130", "141"} {
		if !regexp.MustCompile(`(?m)^\| ` + code + ` \|`).Match(page) {
			t.Errorf("docs/exit-codes.md does not explain %s", code)
		}
	}
}
