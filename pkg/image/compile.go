package image

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// compilation is one run of the Go toolchain.
type compilation struct {
	recipe    Recipe
	arch      string
	source    string // main.go
	beside    string
	stub      string
	sums      string // go.sum
	goVersion string
	env       []string
	args      []string
}

// findGo asks the toolchain for its version, once.
func (b *Builder) findGo(ctx context.Context) error {
	if b.goVersion != "" {
		return nil
	}
	out, err := host.Command{Args: []string{"go", "env", "GOVERSION"}, Env: goEnv, Dir: os.TempDir()}.Run(ctx)
	if err != nil {
		return fmt.Errorf("building from source needs the Go toolchain in PATH: %w", err)
	}
	b.goVersion, _, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return nil
}

func (b *Builder) compilation(ctx context.Context, r Recipe, arch string) (compilation, error) {
	if err := b.findGo(ctx); err != nil {
		return compilation{}, err
	}
	c := compilation{
		recipe: r, arch: arch, goVersion: b.goVersion, env: []string{"GOOS=linux", "GOARCH=" + arch, "CGO_ENABLED=0"},
		source: "package main\n\nfunc main() {}\n", beside: recipeFile(r.Beside), sums: recipeFile(r.sumsFile()),
	}
	if r.Main != "" {
		c.source = recipeFile(r.Main)
	}
	if r.Stub != nil {
		c.stub = recipeFile(r.Stub.Source)
	}
	flags := append([]string{"-s", "-w", "-buildid="}, r.LDFlags...)
	if slices.Contains(r.CgoOn, arch) && arch == runtime.GOARCH {
		c.env[2] = "CGO_ENABLED=1"
		flags = append(flags, "-extldflags -static")
	}
	if arch == "arm" {
		c.env = append(c.env, "GOARM=7")
	}
	c.args = []string{"go", "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(flags, " ")}
	return c, nil
}

func (c compilation) run(ctx context.Context, dir string) error {
	return c.inModule(func(work string) error { return c.buildAll(ctx, work, dir) })
}

// inModule calls do with the directory of a temporary module.
func (c compilation) inModule(do func(work string) error) error {
	work, err := os.MkdirTemp("", "kube-bootstrap-build-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	goVersion := strings.TrimPrefix(c.goVersion, "go")
	files := map[string]string{"go.mod": c.recipe.goMod(goVersion), "go.sum": c.sums, "main.go": c.source}
	if stub := c.recipe.Stub; stub != nil {
		files[filepath.Join(stub.dir(), "go.mod")] = fmt.Sprintf("module %s\n\ngo %s\n", stub.Module, goVersion)
		files[filepath.Join(stub.dir(), stub.Package, "stub.go")] = c.stub
	}
	if err := writeFiles(work, files); err != nil {
		return err
	}
	return do(work)
}

func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	return nil
}

func (c compilation) buildAll(ctx context.Context, work, dir string) error {
	for _, pkg := range c.recipe.Packages {
		if err := c.build(ctx, work, pkg, filepath.Join(dir, c.recipe.Program(pkg))); err != nil {
			return err
		}
	}
	for _, pkg := range c.recipe.Tests {
		if err := c.buildTests(ctx, work, pkg, filepath.Join(dir, path.Base(pkg)+".test")); err != nil {
			return err
		}
	}
	return nil
}

// buildTests compiles a copy of the package, because files cannot be added to a
// module in the module cache.
func (c compilation) buildTests(ctx context.Context, work, pkg, out string) error {
	from, err := host.Command{Args: []string{"go", "list", "-f", "{{.Dir}}", pkg}, Dir: work,
		Env: append(slices.Clone(goEnv), c.env...)}.Run(ctx)
	if err != nil {
		return err
	}
	name := path.Base(pkg)
	sources, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(from)), "*.go"))
	if err != nil {
		return err
	}
	files := map[string]string{"a_kube_bootstrap_test.go": c.beside}
	for _, source := range sources {
		data, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		files[filepath.Base(source)] = string(data)
	}
	if err := writeFiles(filepath.Join(work, name), files); err != nil {
		return err
	}
	return c.linkTests(ctx, work, "./"+name, out)
}

func (c compilation) build(ctx context.Context, work, pkg, out string) error {
	stale, err := c.stale(ctx, work, c.recipe.Program(pkg), pkg)
	if err != nil {
		return err
	}
	log := c.log(ctx, c.recipe.Program(pkg), "link", len(stale))
	return c.toolchain(ctx, log, host.Command{Args: append(slices.Clone(c.args), "-o", out, pkg), Dir: work})
}

// linkTests compiles the dependencies of the tests before the tests: `go test
// -c` does not print the packages that it compiles, so its progress would not
// be visible.
func (c compilation) linkTests(ctx context.Context, work, pkg, out string) error {
	program := filepath.Base(out)
	stale, err := c.stale(ctx, work, program, "-test", pkg)
	if err != nil {
		return err
	}
	if len(stale) > 0 {
		log := c.log(ctx, program, "compile the tests", len(stale))
		if err := c.toolchain(ctx, log,
			host.Command{Args: append(slices.Clone(c.args), stale...), Dir: work}); err != nil {
			return err
		}
	}
	args := append([]string{"go", "test", "-c", "-vet=off"}, c.args[2:]...)
	return c.toolchain(ctx, c.log(ctx, program, "link", 0), host.Command{Args: append(args, "-o", out, pkg), Dir: work})
}

// list compiles the packages and their dependencies, and writes a line about each.
func (c compilation) list(ctx context.Context, work string, out io.Writer) error {
	const what = "Kubernetes"
	stale, err := c.stale(ctx, work, what, c.recipe.Packages...) // without -export, which compiles
	if err != nil {
		return err
	}
	args := append([]string{"go", "list", "-v", "-f", listFormat, "-export", "-deps", "-trimpath"},
		c.recipe.Packages...)
	return c.toolchain(ctx, c.log(ctx, what, "compare", len(stale)), host.Command{Args: args, Dir: work, Stdout: out})
}

// staleFormat prints the packages to compile, without packages that only one test program needs.
const staleFormat = `{{if and .Stale (not .ForTest) (ne .Name "main")}}{{.ImportPath}}{{end}}`

// stale returns the packages that are missing in Go's build cache.
func (c compilation) stale(ctx context.Context, work, what string, pkgs ...string) ([]string, error) {
	var out strings.Builder
	args := append([]string{"go", "list", "-deps", "-f", staleFormat}, c.args[3:]...)
	log := c.log(ctx, what, "list the packages", 0)
	err := c.toolchain(ctx, log, host.Command{Args: append(args, pkgs...), Dir: work, Stdout: &out})
	return strings.Fields(out.String()), err
}

// log returns a writer that reports how many packages were started, then the next stage.
func (c compilation) log(ctx context.Context, what, then string, total int) *compileLog {
	what = fmt.Sprintf("compile %s %s for %s", what, c.recipe.Version, c.arch)
	return &compileLog{
		what: what, then: then, total: total, report: func(message string) { step.Report(ctx, message, 0, 0) },
	}
}

func (c compilation) toolchain(ctx context.Context, log *compileLog, command host.Command) error {
	log.reportCount()
	command.Env, command.Stderr = append(slices.Clone(goEnv), c.env...), log
	command.Stdout = cmp.Or[io.Writer](command.Stdout, log)
	_, err := command.Run(ctx)
	if failed, ok := errors.AsType[*host.CommandError](err); ok {
		failed.Output = log.tail()
	}
	return err
}

// compileLog counts the packages that `go build -v` prints, one per line, reports
// downloads of modules, and keeps all other lines for the error.
type compileLog struct {
	what    string // "compile kubelet v1.36.3 for amd64"
	then    string // the stage after all packages are compiled: "link"
	total   int    // number of packages to compile
	report  func(message string)
	partial []byte
	count   int
	other   []string
}

func (l *compileLog) Write(p []byte) (int, error) {
	l.partial = append(l.partial, p...)
	for {
		line, rest, found := bytes.Cut(l.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.line(string(line))
		l.partial = append([]byte(nil), rest...)
	}
}

func (l *compileLog) line(text string) {
	module, downloaded := strings.CutPrefix(text, "go: downloading ")
	switch {
	case downloaded:
		l.report(l.what + ": download " + module)
	case text == "" || strings.ContainsAny(text, " \t:"):
		l.other = append(l.other, text)
	default:
		l.count++
		l.reportCount()
	}
}

func (l *compileLog) reportCount() {
	if l.count < l.total {
		l.report(fmt.Sprintf("%s: %d of %d packages", l.what, l.count, l.total))
		return
	}
	l.report(l.what + ": " + l.then)
}

func (l *compileLog) tail() string {
	const lines = 20
	return strings.Join(l.other[max(0, len(l.other)-lines):], "\n")
}
