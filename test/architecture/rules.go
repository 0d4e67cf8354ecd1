// Package architecture keeps the source as docs/architecture.md draws it: which
// package may import which, who may touch the machine, who may print.
package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/kube-bootstrap/kube-bootstrap/"

const (
	maxFileLines     = 400
	maxFunctionLines = 80
)

// layers, from the ground up. A package may import those of lower layers only,
// so siblings never import one another.
var layers = [][]string{
	{"pkg/step", "pkg/catalog"},
	{"pkg/config"},
	{"pkg/host", "pkg/pki", "pkg/kube", "pkg/link"},
	{"pkg/docker", "pkg/ssh", "pkg/access", "pkg/rollout", "pkg/node", "pkg/subnet"},
	{"pkg/image", "pkg/fetch", "pkg/registry", "pkg/dump", "pkg/rotation"},
	{"pkg/bundle", "pkg/imagestore", "pkg/cniplugins", "pkg/backup", "pkg/upgrade"},
	{
		"pkg/agent", "pkg/bootstrapdocker", "pkg/etcd", "pkg/balancer", "pkg/flannel", "pkg/firewall", "pkg/maindocker",
		"pkg/containerd", "pkg/kubelet", "pkg/controlplane",
		"pkg/join", "pkg/addon", "pkg/offline", "pkg/cluster",
	},
	{"pkg/plan"},
	{"cmd/kube-bootstrap"},
}

// parts are the layers within a package, from the bottom.
var parts = [][]string{
	{"pkg/host"},
	{"pkg/host/filesystem", "pkg/host/kernel", "pkg/host/links", "pkg/host/netfilter", "pkg/host/process"},
	{"pkg/host/initsystem"},

	{"pkg/docker/silence"},
	{"pkg/docker"},

	{"pkg/cluster/topology"},
	{"pkg/cluster/provider"},
	{"pkg/cluster/session"},
	{"pkg/cluster/apiserver", "pkg/cluster/remote"},
	{"pkg/cluster/joining", "pkg/cluster/preflight", "pkg/cluster/kubeconfig", "pkg/cluster/tools",
		"pkg/cluster/suite", "pkg/cluster/upgrades"},
	{"pkg/cluster/machines/transfer"},
	{"pkg/cluster/machines", "pkg/cluster/containers/machines", "pkg/cluster/containers/localregistry"},
	{"pkg/cluster/containers"},
	{"pkg/cluster/containers/testhost", "pkg/cluster/containers/dockertools"},
	{"pkg/cluster/containers/requirements"},
	{"pkg/cluster/containers/snapshot"},
	{"pkg/cluster"},

	{"pkg/plan/local"},
	{"pkg/plan/parts"},
	{"pkg/plan/preflight", "pkg/plan/renewal"},
	{"pkg/plan/membership"},
	{"pkg/plan/recovery"},
	{"pkg/plan", "pkg/plan/upkeep"},

	{"pkg/config/components", "pkg/config/addresses", "pkg/config/connection", "pkg/config/mirror",
		"pkg/config/spelling"},
	{"pkg/config"},
	{"pkg/config/previous"},
	{"pkg/config/file"},
	{"pkg/config/source", "pkg/config/reference"},

	{"pkg/image/cache"},
	{"pkg/image/rootfs"},
	{"pkg/image/userland"},
	{"pkg/image"},
	{"pkg/image/e2e"},

	{"pkg/join/certkey"},
	{"pkg/join"},

	{"pkg/bundle/compression"},
	{"pkg/bundle"},
	{"pkg/bundle/artifact", "pkg/bundle/peer"},

	{"cmd/kube-bootstrap/progress"},
	{"cmd/kube-bootstrap/exit"},
	{"cmd/kube-bootstrap/command", "cmd/kube-bootstrap/console", "cmd/kube-bootstrap/output"},
	{"cmd/kube-bootstrap/settings", "cmd/kube-bootstrap/manual"},
	{"cmd/kube-bootstrap/thishost", "cmd/kube-bootstrap/bundles"},
	{"cmd/kube-bootstrap/localcluster"},
	{"cmd/kube-bootstrap/backups"},
	{"cmd/kube-bootstrap"},
}

// exclusive lists what only some packages, and the packages in them, may import: the libraries that
// change a host, and the client of Docker.
var exclusive = []struct{ imports, owners []string }{
	{
		imports: []string{
			"os/exec",
			"github.com/vishvananda/netlink",
			"github.com/vishvananda/netns",
			"github.com/coreos/go-systemd",
			"github.com/coreos/go-iptables",
			"sigs.k8s.io/knftables",
		},
		owners: []string{"pkg/host"},
	},
	{
		imports: []string{"github.com/moby/moby/client"},
		owners:  []string{"pkg/docker", "pkg/cluster/containers/machines"},
	},
	{
		imports: []string{"golang.org/x/crypto/ssh", "github.com/skeema/knownhosts",
			"github.com/kevinburke/ssh_config"},
		owners: []string{"pkg/ssh"},
	},
}

// prints is what only cmd may use: libraries are silent.
var prints = []string{
	"fmt.Print", "fmt.Printf", "fmt.Println", "os.Stdout", "os.Stderr", "os.Exit",
	"log.Print", "log.Printf", "log.Println", "log.Fatal", "log.Fatalf", "log.Fatalln",
}

// emptyWords say nothing about what a package is for.
var emptyWords = []string{"util", "utils", "common", "helper", "helpers", "types", "misc"}

// Violations walks the tree at root and returns every breach of the rules, in
// order.
func Violations(root string) ([]string, error) {
	var all []string
	comments := map[string][]string{} // package directory: files with a package comment
	size := newSizes()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && skipped(entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		file, err := read(root, name)
		if err != nil {
			return err
		}
		all = append(all, file.violations()...)
		file.count(comments)
		size.add(file)
		return nil
	})
	all = append(all, commentViolations(comments)...)
	all = append(all, size.violations()...)
	slices.Sort(all)
	return all, err
}

func skipped(dir string) bool {
	return strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_") || dir == "testdata"
}

// source is one file of Go.
type source struct {
	name   string // relative to the root
	dir    string
	lines  int
	set    *token.FileSet
	syntax *ast.File
}

func read(root, name string) (source, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return source{}, err
	}
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	short, err := filepath.Rel(root, name)
	if err != nil {
		return source{}, err
	}
	short = filepath.ToSlash(short)
	return source{
		name: short, dir: path.Dir(short), lines: strings.Count(string(text), "\n"), set: set, syntax: syntax,
	}, nil
}

func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

func (s source) violations() []string {
	var all []string
	if s.lines > maxFileLines {
		all = append(all, fmt.Sprintf("%s: %d lines; cut it, %d are enough", s.name, s.lines, maxFileLines))
	}
	if slices.Contains(emptyWords, path.Base(s.dir)) {
		all = append(all, fmt.Sprintf("%s: a package called %s; name it for what it is", s.name, path.Base(s.dir)))
	}
	all = append(append(all, s.functions()...), s.needsRoot()...)
	if !strings.HasPrefix(s.dir, "pkg/") && !strings.HasPrefix(s.dir, "cmd/") {
		return all
	}
	all = append(all, s.imports()...)
	if !s.isTest() && !strings.HasPrefix(s.dir, "cmd/") {
		all = append(all, s.printing()...)
	}
	return all
}

func (s source) functions() []string {
	var all []string
	for _, d := range s.syntax.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || s.isTest() {
			continue
		}
		if n := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1; n > maxFunctionLines {
			all = append(all, fmt.Sprintf("%s: %s has %d lines; cut it, %d are enough", s.name, f.Name.Name, n,
				maxFunctionLines))
		}
	}
	return all
}

// needsRoot compares the name of a file with its build tag. `make plain` runs no file with this tag.
func (s source) needsRoot() []string {
	tagged := slices.ContainsFunc(s.syntax.Comments,
		func(g *ast.CommentGroup) bool { return g.List[0].Text == "//go:build root" })
	if named := strings.HasSuffix(s.name, "_root_test.go"); named == tagged {
		return nil
	}
	return []string{
		s.name + ": tests that need root or Docker are in files *_root_test.go with //go:build root; " +
			"only one of both is true",
	}
}

func (s source) imports() []string {
	var all []string
	if layer(s.dir) < 0 {
		return []string{
			fmt.Sprintf("%s: %s has no layer; give it one in test/architecture and docs/architecture.md", s.name,
				s.dir),
		}
	}
	for _, spec := range s.syntax.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if inner, ours := strings.CutPrefix(target, module); ours && !s.isTest() && !below(inner, s.dir) {
			all = append(all, fmt.Sprintf("%s: imports %s, which is not below %s", s.name, inner, s.dir))
		}
		if inner, _ := strings.CutPrefix(target, module); !s.isTest() && onlyContainers(s.dir, inner) {
			all = append(all, fmt.Sprintf("%s: imports %s; %s must fit every kind of node", s.name, inner, s.dir))
		}
		if owners := importersOf(target); !s.isTest() && len(owners) > 0 && !withinAny(s.dir, owners) {
			all = append(all, fmt.Sprintf("%s: imports %s; only %s may", s.name, target, strings.Join(owners, " and ")))
		}
	}
	return all
}

// below reports whether dir may import inner. Within one package of the drawing,
// the order of its parts applies.
func below(inner, dir string) bool {
	if packageOf(inner) != packageOf(dir) {
		return layer(inner) < layer(dir)
	}
	part := func(dir string) int {
		return slices.IndexFunc(parts, func(p []string) bool { return slices.Contains(p, dir) })
	}
	return part(dir) < 0 || part(inner) < part(dir)
}

// onlyContainers reports whether dir would fit only clusters of containers if it imported inner. Only
// pkg/cluster/containers knows the Docker engine of a cluster, and only pkg/cluster, which creates
// clusters, knows pkg/cluster/containers.
func onlyContainers(dir, inner string) bool {
	if !within(dir, "pkg/cluster") || within(dir, "pkg/cluster/containers") {
		return false
	}
	return within(inner, "pkg/docker") || dir != "pkg/cluster" && within(inner, "pkg/cluster/containers")
}

// importersOf returns the packages that alone may import target; none if all may.
func importersOf(target string) []string {
	for _, e := range exclusive {
		if withinAny(target, e.imports) {
			return e.owners
		}
	}
	return nil
}

func withinAny(target string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return within(target, parent) })
}

// layer returns how high dir stands; -1 if it has no place.
func layer(dir string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, packageOf(dir)) })
}

// packageOf returns the package of the drawing that dir belongs to:
// pkg/host/hosttest belongs to pkg/host.
func packageOf(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	return strings.Join(parts[:min(len(parts), 2)], "/")
}

func within(target, parent string) bool {
	return target == parent || strings.HasPrefix(target, parent+"/")
}

func (s source) printing() []string {
	var all []string
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); ok && slices.Contains(prints, of.Name+"."+selector.Sel.Name) {
			all = append(all, fmt.Sprintf("%s: %s.%s; only cmd prints or exits", s.name, of.Name, selector.Sel.Name))
		}
		return true
	})
	return all
}

func (s source) count(comments map[string][]string) {
	if s.isTest() || s.dir == "." {
		return
	}
	found := comments[s.dir]
	if s.syntax.Doc != nil {
		found = append(found, s.name)
	}
	comments[s.dir] = found
}

func commentViolations(comments map[string][]string) []string {
	var all []string
	for dir, files := range comments {
		switch {
		case len(files) == 0:
			all = append(all, dir+": no package comment; say in one file what it is for")
		case len(files) > 1:
			all = append(all, fmt.Sprintf("%s: %d package comments (%s); keep one", dir, len(files),
				strings.Join(files, ", ")))
		}
	}
	return all
}
