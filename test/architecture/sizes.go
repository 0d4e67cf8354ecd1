package architecture

import (
	"fmt"
	"go/ast"
	"strings"
)

const (
	maxPackageLines = 2500 // without tests
	maxMethods      = 30   // of one receiver
)

// sizes are the lines of each package and the methods of each receiver, without
// tests.
type sizes struct{ lines, methods map[string]int }

func (z sizes) add(s source) {
	if s.isTest() || !strings.HasPrefix(s.dir, "pkg/") && !strings.HasPrefix(s.dir, "cmd/") {
		return
	}
	z.lines[s.dir] += s.lines
	for _, d := range s.syntax.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
			z.methods[s.dir+"."+receiver(f.Recv.List[0].Type)]++
		}
	}
}

// receiver returns the name of the type of a receiver.
func receiver(of ast.Expr) string {
	switch t := of.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}

func (z sizes) violations() (all []string) {
	for dir, n := range z.lines {
		if n > maxPackageLines {
			all = append(all, fmt.Sprintf("%s: %d lines; split it, %d are enough for a package", dir, n, maxPackageLines))
		}
	}
	for name, n := range z.methods {
		if n > maxMethods {
			all = append(all, fmt.Sprintf("%s has %d methods; split it, %d are enough", name, n, maxMethods))
		}
	}
	return all
}
