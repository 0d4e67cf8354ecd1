package architecture

import (
	"go/ast"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
)

// problemTable has the names that --ignore-preflight accepts. It is compared
// with the names of the packages in which preflight looks.
const problemTable = "pkg/plan/preflight/ignore.go"

var looked = []string{
	"pkg/plan", "pkg/plan/local", "pkg/plan/parts", "pkg/plan/preflight", "pkg/maindocker", "pkg/containerd",
	"pkg/flannel", "pkg/kubelet", "pkg/join", "pkg/registry",
}

// unlistedProblems returns a breach for each name of a problem or of a check of
// preflight that the table lacks. Names that are put together must be listed by
// hand.
func unlistedProblems(root string) ([]string, error) {
	table, err := read(root, filepath.Join(root, problemTable))
	if err != nil {
		return nil, err
	}
	var listed, all []string
	ast.Inspect(table.syntax, func(n ast.Node) bool {
		listed = append(listed, literal(n)...)
		return true
	})
	for _, dir := range looked {
		files, err := filepath.Glob(path.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			file, err := read(root, name)
			if err != nil {
				return nil, err
			}
			for _, problem := range file.problems() {
				if !slices.Contains(listed, problem) && !file.isTest() {
					all = append(all, file.name+": --ignore-preflight does not know the problem "+problem+
						"; add it to "+problemTable)
				}
			}
		}
	}
	return all, nil
}

// problems returns the names in Problem{Name: "name"}, check{"name", ...},
// ask("name", ...) and problemNamed("name", ...), and in problem("name", ...), which a
// registry has.
func (s source) problems() (names []string) {
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			names = append(names, namesIn(n)...)
		case *ast.CallExpr:
			if len(n.Args) == 0 {
				return true
			}
			switch NameOf(n.Fun) {
			case "ask", "problemNamed":
				names = append(names, literal(n.Args[0])...)
			case "problem":
				for _, name := range literal(n.Args[0]) {
					names = append(names, path.Base(s.dir)+"-"+name)
				}
			}
		}
		return true
	})
	return names
}

// NameOf returns the name of a function, type or variable without its package, and
// "" for other expressions.
func NameOf(n ast.Expr) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		return n.Sel.Name
	case *ast.Ident:
		return n.Name
	}
	return ""
}

// namesIn returns the names in a Problem, in a check and in a list of checks.
func namesIn(n *ast.CompositeLit) (names []string) {
	switch kind := n.Type.(type) {
	case *ast.ArrayType:
		if NameOf(kind.Elt) != "check" {
			return nil
		}
		for _, element := range n.Elts {
			if one, ok := element.(*ast.CompositeLit); ok && len(one.Elts) > 0 {
				names = append(names, literal(one.Elts[0])...)
			}
		}
	case ast.Expr:
		switch {
		case NameOf(kind) == "Problem":
			return nameIn(n)
		case NameOf(kind) == "check" && len(n.Elts) > 0:
			return literal(n.Elts[0])
		}
	}
	return names
}

// nameIn returns the field Name, unless Firm is set: such a problem cannot be
// ignored.
func nameIn(n *ast.CompositeLit) (names []string) {
	for _, field := range n.Elts {
		pair, ok := field.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch NameOf(pair.Key) {
		case "Name":
			names = literal(pair.Value)
		case "Firm":
			return nil
		}
	}
	return names
}

func literal(n ast.Node) []string {
	if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if text, err := strconv.Unquote(l.Value); err == nil {
			return []string{text}
		}
	}
	return nil
}
