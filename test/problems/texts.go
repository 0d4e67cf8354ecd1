package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/test/architecture"
)

// unknown stands for a value that is known only at run time.
const unknown = "…"

// pkg is what an expression of a package may refer to.
type pkg struct {
	funcs  map[string]*ast.FuncDecl
	consts map[string]ast.Expr
}

func newPackage(files []*ast.File) pkg {
	p := pkg{map[string]*ast.FuncDecl{}, map[string]ast.Expr{}}
	for _, file := range files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				p.funcs[d.Name.Name] = d
			case *ast.GenDecl:
				p.add(d)
			}
		}
	}
	return p
}

func (p pkg) add(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.CONST {
			for i := range v.Values {
				p.consts[v.Names[i].Name] = v.Values[i]
			}
		}
	}
}

// scope is the function of an expression, and the arguments of its call, which
// belong to the calling function.
type scope struct {
	f     *ast.FuncDecl
	args  map[string]ast.Expr
	in    *ast.FuncDecl
	depth int
}

func arguments(f *ast.FuncDecl, call *ast.CallExpr) map[string]ast.Expr {
	args, i := map[string]ast.Expr{}, 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if i < len(call.Args) {
				args[name.Name] = call.Args[i]
			}
			i++
		}
	}
	return args
}

var verb = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]`)

const most = 6 // alternatives of a text

// texts returns what an expression may be. An expression that is missing is
// empty.
func (p pkg) texts(e ast.Expr, in scope) []string {
	if in.depth++; in.depth > 8 {
		return []string{unknown}
	}
	var all []string
	switch e := e.(type) {
	case nil:
		return []string{""}
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return []string{text}
		}
	case *ast.ParenExpr:
		return p.texts(e.X, in)
	case *ast.BinaryExpr:
		for _, left := range p.texts(e.X, in) {
			for _, right := range p.texts(e.Y, in) {
				all = append(all, left+right)
			}
		}
	case *ast.CallExpr:
		all = p.calls(e, in)
	case *ast.Ident:
		all = p.named(e.Name, in)
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > most || len(all) == 0 {
		return []string{unknown}
	}
	return all
}

// calls returns the format of a Sprintf, or what a function of the package may
// return.
func (p pkg) calls(e *ast.CallExpr, in scope) (all []string) {
	name := architecture.NameOf(e.Fun)
	if name == "Sprintf" || name == "Sprint" {
		for _, format := range p.texts(e.Args[0], in) {
			all = append(all, verb.ReplaceAllString(format, unknown))
		}
		return all
	}
	f := p.funcs[name]
	if f == nil || f.Type.Results == nil || architecture.NameOf(f.Type.Results.List[0].Type) != "string" {
		return nil
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if back, ok := n.(*ast.ReturnStmt); ok && len(back.Results) > 0 {
			all = append(all, p.texts(back.Results[0], scope{f: f, depth: in.depth})...)
		}
		return true
	})
	return all
}

// named returns what a name stands for: an argument, a constant, or everything
// that the function assigns to it.
func (p pkg) named(name string, in scope) (all []string) {
	if arg, ok := in.args[name]; ok {
		return p.texts(arg, scope{f: in.in, depth: in.depth})
	}
	if value, ok := p.consts[name]; ok {
		return p.texts(value, in)
	}
	if in.f == nil {
		return nil
	}
	ast.Inspect(in.f, func(n ast.Node) bool {
		set, ok := n.(*ast.AssignStmt)
		if !ok || len(set.Lhs) != len(set.Rhs) || set.Tok == token.ADD_ASSIGN {
			return true
		}
		for i, left := range set.Lhs {
			if architecture.NameOf(left) == name {
				all = append(all, p.texts(set.Rhs[i], in)...)
			}
		}
		return true
	})
	return slices.DeleteFunc(all, func(text string) bool { return text == unknown || text == "" })
}
