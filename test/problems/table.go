package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/test/architecture"
)

// problem is one row of the table: a name and every case that has it.
type problem struct {
	Name  string   `json:"name"`
	Cases []reason `json:"cases"`
}

type reason struct {
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// tableOf returns the problems in the packages below some directories.
func tableOf(dirs ...string) ([]problem, error) {
	byName := map[string][]reason{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if ofTests(entry.Name()) {
				return filepath.SkipDir
			}
			files, err := parsed(path)
			if err != nil {
				return err
			}
			newPackage(files).problems(func(name string, one reason) {
				if !slices.Contains(byName[name], one) {
					byName[name] = append(byName[name], one)
				}
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var all []problem
	for name, cases := range byName {
		cases = specific(cases)
		slices.SortFunc(cases, func(a, b reason) int {
			return cmp.Or(cmp.Compare(a.Text, b.Text),
				cmp.Compare(a.Remedy, b.Remedy))
		})
		all = append(all, problem{name, cases})
	}
	slices.SortFunc(all, func(a, b problem) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// ofTests reports whether a directory has a package that only tests use: "hosttest", "testdata".
func ofTests(dir string) bool { return strings.HasSuffix(dir, "test") || dir == "testdata" }

// specific removes the cases of which another case says more: a function that makes a
// problem of its arguments is read once without a call.
func specific(cases []reason) []reason {
	general := func(one reason) bool {
		text, remedy := pattern(one.Text), pattern(one.Remedy)
		return strings.Trim(one.Text, unknown) != "" && slices.ContainsFunc(cases, func(other reason) bool {
			return other != one && text.MatchString(other.Text) && remedy.MatchString(other.Remedy)
		})
	}
	left := slices.DeleteFunc(slices.Clone(cases), general)
	for i := range left {
		left[i].Remedy = strings.TrimPrefix(left[i].Remedy, unknown)
	}
	return left
}

// pattern matches the texts in which more is known.
func pattern(text string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(text), unknown, ".+") + "$")
}

func parsed(dir string) (files []*ast.File, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

var validName = regexp.MustCompile(`^[a-z][a-z0-9]*(-([a-z0-9]+|NAME))*$`)

// problems calls found for each problem of the package: of a literal, or of a
// call of a function that makes a literal of its arguments.
func (p pkg) problems(found func(string, reason)) {
	for _, f := range p.funcs {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if !ofArguments(f, n) {
					p.report(n, scope{f: f}, found)
				}
			case *ast.CallExpr:
				if of := p.funcs[architecture.NameOf(n.Fun)]; of != nil {
					for _, made := range literals(of) {
						p.report(made, scope{f: of, args: arguments(of, n), in: f}, found)
					}
				}
			}
			return true
		})
	}
}

// report reports a literal whose name is known in this scope.
func (p pkg) report(n *ast.CompositeLit, in scope, found func(string, reason)) {
	if architecture.NameOf(n.Type) != "Problem" {
		return
	}
	fields := map[string]ast.Expr{}
	for _, e := range n.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			fields[architecture.NameOf(pair.Key)] = pair.Value
		}
	}
	for _, name := range p.texts(fields["Name"], in) {
		name = strings.ReplaceAll(name, unknown, "NAME")
		if !validName.MatchString(name) {
			continue
		}
		for _, text := range p.texts(fields["Text"], in) {
			for _, remedy := range p.texts(fields["Remedy"], in) {
				found(name, reason{cmp.Or(text, unknown), remedy})
			}
		}
	}
}

// ofArguments reports whether the name of a problem is made of an argument of f.
// Such a problem is found where f is called.
func ofArguments(f *ast.FuncDecl, n *ast.CompositeLit) (is bool) {
	known := map[string]bool{}
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			known[name.Name] = true
		}
	}
	for _, e := range n.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok && architecture.NameOf(pair.Key) == "Name" {
			ast.Inspect(pair.Value, func(n ast.Node) bool {
				name, ok := n.(*ast.Ident)
				is = is || ok && known[name.Name]
				return true
			})
		}
	}
	return is
}

// literals returns the problems that a function makes.
func literals(f *ast.FuncDecl) (all []*ast.CompositeLit) {
	ast.Inspect(f, func(n ast.Node) bool {
		if made, ok := n.(*ast.CompositeLit); ok && architecture.NameOf(made.Type) == "Problem" {
			all = append(all, made)
		}
		return true
	})
	return all
}
