package architecture

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	maxPackageLines = 2500 // without tests
	maxMethods      = 30   // of one receiver, promoted methods included
)

// largeReceivers are receivers that are above maxMethods because they embed others. No
// type may be added.
var largeReceivers = []string{"pkg/cluster.creation", "pkg/cluster.joining", "pkg/cluster/session.Session"}

// sizes are the lines of each package and the methods of each receiver, without
// tests. A type is named by its directory and its name: "pkg/etcd.Member".
type sizes struct {
	lines    map[string]int
	methods  map[string][]string
	embedded map[string][]string // the types of this module that a struct embeds
}

func newSizes() sizes {
	return sizes{lines: map[string]int{}, methods: map[string][]string{}, embedded: map[string][]string{}}
}

func (z sizes) add(s source) {
	if s.isTest() {
		return
	}
	z.lines[s.dir] += s.lines
	for _, d := range s.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				of := s.typeName(d.Recv.List[0].Type)
				z.methods[of] = append(z.methods[of], d.Name.Name)
			}
		case *ast.GenDecl:
			z.addStructs(s, d)
		}
	}
}

func (z sizes) addStructs(s source, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		body, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range body.Fields.List {
			if of := s.dir + "." + t.Name.Name; len(field.Names) == 0 {
				z.embedded[of] = append(z.embedded[of], s.typeName(field.Type))
			}
		}
	}
}

// typeName returns the name of a type of this module.
func (s source) typeName(of ast.Expr) string {
	switch t := of.(type) {
	case *ast.StarExpr:
		return s.typeName(t.X)
	case *ast.IndexExpr:
		return s.typeName(t.X)
	case *ast.Ident:
		return s.dir + "." + t.Name
	case *ast.SelectorExpr:
		return s.imported(NameOf(t.X)) + "." + t.Sel.Name
	}
	return "?"
}

// imported returns the directory of the package that a file imports under a name.
func (s source) imported(name string) string {
	for _, spec := range s.syntax.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		dir, ours := strings.CutPrefix(target, module)
		if err == nil && ours && (path.Base(dir) == name || spec.Name != nil && spec.Name.Name == name) {
			return dir
		}
	}
	return name
}

// promoted returns the names of the methods of a type and of all types that it embeds.
func (z sizes) promoted(of string, seen map[string]bool) []string {
	if seen[of] {
		return nil
	}
	seen[of] = true
	all := slices.Clone(z.methods[of])
	for _, inner := range z.embedded[of] {
		all = append(all, z.promoted(inner, seen)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (z sizes) violations() (all []string) {
	for dir, n := range z.lines {
		if n > maxPackageLines {
			all = append(all, fmt.Sprintf("%s: %d lines; split it, %d are enough for a package", dir, n,
				maxPackageLines))
		}
	}
	types := slices.Concat(slices.Collect(maps.Keys(z.methods)), slices.Collect(maps.Keys(z.embedded)))
	slices.Sort(types)
	for _, name := range slices.Compact(types) {
		if n := len(z.promoted(name, map[string]bool{})); n > maxMethods && !slices.Contains(largeReceivers, name) {
			all = append(all, fmt.Sprintf("%s has %d methods; split it, %d are enough", name, n, maxMethods))
		}
	}
	return all
}
