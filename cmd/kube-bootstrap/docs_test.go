package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/cobra"
)

func testProgram() *program {
	return &program{out: io.Discard, err: io.Discard, env: func(string) string { return "" }}
}

// allCommands returns the root of all commands, those of cobra included.
func allCommands() *cobra.Command {
	root := testProgram().root()
	root.InitDefaultCompletionCmd()
	return root
}

func TestDocsAreUpToDate(t *testing.T) {
	pages, err := testProgram().docs()
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
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		if !c.Hidden && (c.Short == "" || !c.HasSubCommands() && c.Example == "") {
			t.Errorf("%s: no help or no example", c.CommandPath())
		}
		for _, child := range c.Commands() {
			look(child)
		}
	}
	look(testProgram().root())
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
