package main

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestExamplesAreCommandsThereAre reads every command line of the pages and of
// the help as a shell and this program would: what it names must be there.
func TestExamplesAreCommandsThereAre(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	must.NoError(t, err)
	seen := 0
	for _, page := range append(pages, "../../README.md") {
		text := must.Read(t, page)
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			seen += checkExamples(t, filepath.Base(page), block[1])
		}
	}
	command.Each(allCommands(), func(c *cobra.Command) { seen += checkExamples(t, c.CommandPath(), c.Example) })
	if seen < 100 {
		t.Errorf("only %d examples were found", seen)
	}
}

// checkExamples returns how many command lines of this program the text has.
func checkExamples(t *testing.T, where, text string) (seen int) {
	t.Helper()
	// What stands for something else is no shell.
	file, err := syntax.NewParser().Parse(strings.NewReader(strings.ReplaceAll(text, "...", "x")), where)
	if err != nil {
		t.Errorf("%s: %v:\n%s", where, err, text)
		return 0
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if words := programCall(n); words != nil {
			seen++
			if err := wouldRun(words); err != nil {
				t.Errorf("%s: `kube-bootstrap %s`: %v", where, strings.Join(words, " "), err)
			}
		}
		return true
	})
	return seen
}

// programCall returns the arguments, if n calls this program.
func programCall(n syntax.Node) []string {
	call, ok := n.(*syntax.CallExpr)
	if !ok {
		return nil
	}
	var words []string
	for _, arg := range call.Args {
		word, err := expand.Literal(&expand.Config{Env: expand.ListEnviron("HOME=/root")}, arg)
		if err != nil {
			word = "x" // a command's output
		}
		words = append(words, word)
	}
	if i := slices.Index(words, "kube-bootstrap"); i >= 0 {
		return append([]string{}, words[i+1:]...)
	}
	return nil
}

// wouldRun finds the command and reads its flags and arguments, without
// running it.
func wouldRun(words []string) error {
	root := allCommands()
	c, rest, err := root.Find(command.Separate(root, words))
	if err != nil {
		return err
	}
	c.InitDefaultHelpFlag()
	err = c.ParseFlags(rest)
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.ValidateArgs(c.Flags().Args())
}
