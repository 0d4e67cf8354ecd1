package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// compilation is one run of the Go toolchain.
type compilation struct {
	recipe    recipe
	arch      string
	source    string
	beside    string
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

func newCompilation(r recipe, arch, goVersion string) (compilation, error) {
	c := compilation{recipe: r, arch: arch, goVersion: goVersion}
	var err error
	if c.source, err = r.source(); err != nil {
		return c, err
	}
	if c.beside, err = r.beside(); err != nil {
		return c, err
	}
	c.env = []string{"GOOS=linux", "GOARCH=" + arch, "CGO_ENABLED=0"}
	flags := append([]string{"-s", "-w", "-buildid="}, r.LDFlags...)
	if slices.Contains(r.CgoOn, arch) && arch == hostArch() {
		c.env[2] = "CGO_ENABLED=1"
		flags = append(flags, "-extldflags -static")
	}
	if arch == "arm" {
		c.env = append(c.env, "GOARM=7")
	}
	c.args = []string{"go", "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(flags, " ")}
	return c, nil
}

// run compiles into dir.
func (c compilation) run(ctx context.Context, dir string) error {
	return c.inModule(func(work string) error { return c.buildAll(ctx, work, dir) })
}

// inModule does something in a module of its own that is thrown away.
func (c compilation) inModule(do func(work string) error) error {
	work, err := os.MkdirTemp("", "kube-bootstrap-build-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	mod := c.recipe.goMod(strings.TrimPrefix(c.goVersion, "go"))
	if err := os.WriteFile(filepath.Join(work, "go.mod"), []byte(mod), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "main.go"), []byte(c.source), 0o644); err != nil {
		return err
	}
	return do(work)
}

func (c compilation) buildAll(ctx context.Context, work, dir string) error {
	for _, pkg := range c.recipe.Packages {
		if err := c.build(ctx, work, c.args, pkg, filepath.Join(dir, c.recipe.program(pkg))); err != nil {
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

// buildTests compiles a copy of the package, as a module in the cache of the
// toolchain takes no further file.
func (c compilation) buildTests(ctx context.Context, work, pkg, out string) error {
	from, err := host.Command{Args: []string{"go", "list", "-f", "{{.Dir}}", pkg}, Dir: work, Env: append(slices.Clone(goEnv), c.env...)}.Run(ctx)
	if err != nil {
		return err
	}
	name := path.Base(pkg)
	if err := copySources(strings.TrimSpace(string(from)), filepath.Join(work, name)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, name, "kube_bootstrap_test.go"), []byte(c.beside), 0o644); err != nil {
		return err
	}
	return c.build(ctx, work, append([]string{"go", "test", "-c", "-vet=off"}, c.args[2:]...), "./"+name, out)
}

// copySources copies the Go files of one package.
func copySources(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.go"))
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (c compilation) build(ctx context.Context, work string, args []string, pkg, out string) error {
	return c.compile(ctx, c.recipe.program(pkg), host.Command{Args: append(slices.Clone(args), "-o", out, pkg), Dir: work})
}

// list compiles the packages, and those they need, and writes what the
// toolchain knows of each.
func (c compilation) list(ctx context.Context, work string, out io.Writer) error {
	args := append([]string{"go", "list", "-v", "-export", "-deps", "-trimpath", "-f", listFormat}, c.recipe.Packages...)
	return c.compile(ctx, "Kubernetes", host.Command{Args: args, Dir: work, Stdout: out})
}

// compile runs the toolchain and tells how far it is.
func (c compilation) compile(ctx context.Context, what string, command host.Command) error {
	progress := &compileLog{report: func(done int) {
		step.Report(ctx, fmt.Sprintf("compile %s %s for %s... %d packages", what, c.recipe.Version, c.arch, done), 0, 0)
	}}
	progress.report(0)
	command.Env, command.Stderr = append(slices.Clone(goEnv), c.env...), progress
	if command.Stdout == nil {
		command.Stdout = progress
	}
	_, err := command.Run(ctx)
	var failed *host.CommandError
	if errors.As(err, &failed) {
		failed.Output = progress.tail()
	}
	return err
}

// compileLog counts the packages that `go build -v` names, one a line, and
// keeps everything else for the error.
type compileLog struct {
	report  func(packages int)
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
	if text == "" || strings.ContainsAny(text, " \t:") {
		if !strings.HasPrefix(text, "go: downloading ") {
			l.other = append(l.other, text)
		}
		return
	}
	if l.count++; l.count%10 == 0 {
		l.report(l.count)
	}
}

func (l *compileLog) tail() string {
	const lines = 20
	return strings.Join(l.other[max(0, len(l.other)-lines):], "\n")
}
