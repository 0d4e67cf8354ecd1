package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// hinted matches a command in backquotes, as in remedies, help texts and pages.
var hinted = regexp.MustCompile("`((?:kube-bootstrap|cluster|node|token|offline|config) [^`]+)`")

// TestHintsAreCommandsThereAre checks that each command which a source or a
// page tells the reader to run exists, with its flags.
func TestHintsAreCommandsThereAre(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry != nil && (entry.Name() == ".git" || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			return err
		}
		var texts []string
		switch {
		case strings.HasSuffix(path, "_test.go"):
		case filepath.Ext(path) == ".go":
			texts, err = stringsOf(path)
		case filepath.Ext(path) == ".md":
			var data []byte
			data, err = os.ReadFile(path)
			texts = []string{strings.ReplaceAll(string(data), "…", placeholder)}
		}
		for _, text := range texts {
			seen += checkHints(t, path, text)
		}
		return err
	})
	if err != nil || seen < 80 {
		t.Errorf("only %d hints were found, %v", seen, err)
	}
}

func checkHints(t *testing.T, path, text string) (seen int) {
	t.Helper()
	for _, m := range hinted.FindAllStringSubmatch(text, -1) {
		seen++
		if err := isCommand(strings.TrimPrefix(m[1], "kube-bootstrap ")); err != nil {
			t.Errorf("%s: `%s`: %v", path, m[1], err)
		}
	}
	return seen
}

// isCommand finds the command and parses its flags. Arguments may be omitted.
func isCommand(text string) error {
	words := strings.Fields(text)
	if words[0] == placeholder {
		words[0] = "master" // or another host verb
	}
	c, rest, err := allCommands().Find(words)
	if err != nil {
		return err
	}
	c.InitDefaultHelpFlag()
	if err := c.ParseFlags(rest); err != nil && !strings.Contains(err.Error(), "help requested") &&
		!strings.HasPrefix(err.Error(), "flag needs an argument") {
		return err
	}
	if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 && args[0] != "..." {
		return fmt.Errorf("%s has no command %s", c.CommandPath(), args[0])
	}
	return nil
}

// placeholder replaces values that are only known at run time.
const placeholder = "X"

var verbs = regexp.MustCompile(`%[#+]?[a-z]`)

// stringsOf returns the strings of a source file, with concatenations joined.
func stringsOf(path string) (all []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok || !isText(e) {
			return true
		}
		all = append(all, verbs.ReplaceAllString(textOf(e), placeholder))
		return false
	})
	return all, nil
}

// isText reports whether an expression is a string, or a sum that contains one.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (isText(e.X) || isText(e.Y))
	}
	return false
}

func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	case *ast.CallExpr:
		if name, ok := e.Fun.(*ast.Ident); ok && strings.HasSuffix(name.Name, "Flag") {
			return "" // a value that is empty by default
		}
	}
	return placeholder
}

func TestHintsThatAreNoCommands(t *testing.T) {
	for _, hint := range []string{
		"certs frobnicate", "cluster create", "forget node-3 --ignore-preflight role",
		"node add --label web", "frobnicate",
	} {
		if isCommand(hint) == nil {
			t.Errorf("`kube-bootstrap %s` is taken for a command", hint)
		}
	}
}
