package image

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Builder builds images from source with the Go toolchain in PATH.
type Builder struct {
	Cache     string // cache.Dir()
	BaseImage string // the userland, instead of Debian packages
	K8sDir    string // a checkout of Kubernetes to build instead of the module

	goVersion string
}

// Compile builds a recipe. The Dir of the part contains the executables.
func (b *Builder) Compile(ctx context.Context, r Recipe, arch string) (cache.Part, error) {
	if err := b.prepare(ctx, &r); err != nil {
		return cache.Part{}, fmt.Errorf("prepare %s: %w", r.Name, err)
	}
	c, part, err := b.resolve(ctx, r, arch)
	if err != nil {
		return cache.Part{}, err
	}
	part.Dir, err = cache.Get(ctx, b.Cache, c.partName(part), func(dir string) error {
		started := time.Now()
		if err := c.run(ctx, dir); err != nil {
			return err
		}
		return cache.WriteDuration(b.Cache, r.Name, time.Since(started)) // for Effort
	})
	if err != nil {
		return cache.Part{}, fmt.Errorf("compile %s: %w", Pending{r, arch}, err)
	}
	part.Sources, err = modules(part.Dir)
	return part, err
}

// resolve returns the compilation of a prepared recipe, and a part without Dir and Sources.
func (b *Builder) resolve(ctx context.Context, r Recipe, arch string) (compilation, cache.Part, error) {
	c, err := b.compilation(ctx, r, arch)
	return c, cache.Part{
		Name: r.Name, Version: r.Version, Origin: r.origin(),
		Key: cache.Key(r, c.source+c.beside+c.stub, c.env, c.args, c.goVersion, b.checkoutState()),
		How: strings.Join(append(slices.Clone(c.env), c.args...), " ") + " (" + c.goVersion + ")",
	}, err
}

func (c compilation) partName(part cache.Part) string {
	return fmt.Sprintf("%s-%s-%s-%s", part.Name, part.Version, c.arch, part.Key)
}

func (r Recipe) origin() string {
	var all []string
	for _, m := range sortedKeys(r.Require) {
		all = append(all, m+"@"+r.Require[m])
		if dir, ok := r.Replace[m]; ok {
			all[len(all)-1] = dir
		}
	}
	return strings.Join(all, " ")
}

// prepare adds the modules that are part of the Kubernetes release.
func (b *Builder) prepare(ctx context.Context, r *Recipe) error {
	if r.Require["k8s.io/kubernetes"] == "" {
		return nil
	}
	dir, err := b.K8sDir, error(nil)
	if dir == "" {
		dir, err = cache.Get(ctx, b.Cache, r.releasePart(), func(dir string) error {
			module, err := Download(ctx, "k8s.io/kubernetes@"+r.Version)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(module.GoMod)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "go.mod"), data, 0o644)
		})
		if err != nil {
			return err
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	r.Replace = map[string]string{}
	for _, m := range stagingLine.FindAllSubmatch(data, -1) {
		r.Replace[string(m[1])] = string(m[1]) + " " + Staging(r.Version)
		if b.K8sDir != "" {
			r.Replace[string(m[1])] = filepath.Join(b.K8sDir, string(m[2]))
		}
	}
	if b.K8sDir != "" {
		r.Replace["k8s.io/kubernetes"] = b.K8sDir
	}
	return nil
}

// releasePart names the part that contains the go.mod of the Kubernetes release.
func (r Recipe) releasePart() string { return "kubernetes-mod-" + r.Version }

var stagingLine = regexp.MustCompile(`(?m)^\s*(?:replace\s+)?(k8s\.io/\S+) => (\./staging/\S+)$`)

// Module is a module in the Go module cache.
type Module struct{ GoMod, Dir, Error string }

// Download fetches a module.
func Download(ctx context.Context, module string) (Module, error) {
	step.Report(ctx, "download "+module, 0, 0)
	out, err := host.Command{Args: []string{"go", "mod", "download", "-json", module}, Env: goEnv,
		Dir: os.TempDir()}.Run(ctx)
	var answer Module
	if jsonErr := json.Unmarshal(out, &answer); jsonErr == nil && answer.Error != "" {
		return answer, errors.New(answer.Error)
	}
	return answer, err
}

// goEnv ignores the settings of a Go project around the working directory.
var goEnv = []string{"GOFLAGS=-mod=mod", "GOWORK=off"}

// checkoutState returns a hash of the names, sizes and times of the files: go.mod, assembly
// and embedded files change a program as well as Go code. It also reads a checkout that is
// behind a symbolic link.
func (b *Builder) checkoutState() string {
	if b.K8sDir == "" {
		return ""
	}
	var state bytes.Buffer
	_ = filepath.WalkDir(b.K8sDir+"/", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "_output") {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				fmt.Fprintln(&state, path, info.Size(), info.ModTime().UnixNano())
			}
		}
		return nil
	})
	return cache.Key(state.Bytes())
}

// modules lists the modules of the executables in a directory, with checksums.
func modules(dir string) ([]string, error) {
	programs, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, p := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(dir, p.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the build info: %w", err)
		}
		for _, m := range append(info.Deps, &info.Main) {
			if text := moduleSum(m); text != "" {
				all = append(all, text)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// moduleSum returns "" for the main module. A checkout or a stub has no checksum.
func moduleSum(m *debug.Module) string {
	name := m.Path
	if strings.HasPrefix(name, OurRegistry+"/") || name == "" {
		return ""
	}
	if m.Replace != nil {
		m = m.Replace
	}
	if strings.HasPrefix(m.Path, stubDir) {
		return name + " (stub)"
	}
	if m.Sum == "" {
		return name + " (checkout)"
	}
	return m.Path + "@" + m.Version + " " + m.Sum
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
