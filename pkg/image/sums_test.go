package image

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// catalogueRecipes returns all recipes of all versions in the catalogue.
func catalogueRecipes(t *testing.T) (all []Recipe) {
	t.Helper()
	for _, m := range catalog.Minors() {
		v, err := For(m.Patch, Versions{})
		must.NoError(t, err)
		for _, name := range []string{
			"hyperkube", "etcd", "flannel", "coredns", "cni", "metrics-server", "local-path-provisioner",
			"metallb-controller", "metallb-speaker",
		} {
			all = append(all, v.Recipe(name))
		}
	}
	return all
}

// TestTheCatalogueIsPinned: the modules that recipes name are in their go.sum.
// With UPDATE_GOLDEN=1, it writes the files first, which takes minutes and
// needs a module proxy and a checksum database.
func TestTheCatalogueIsPinned(t *testing.T) {
	if os.Getenv("UPDATE_GOLDEN") != "" {
		updateSums(t)
	}
	for _, r := range catalogueRecipes(t) {
		sums := must.Read(t, filepath.Join("recipes", r.sumsFile()))
		for module, version := range r.Require {
			for _, line := range []string{module + " " + version + " h1:", module + " " + version + "/go.mod h1:"} {
				if !strings.Contains("\n"+string(sums), "\n"+line) {
					t.Errorf("recipes/%s lacks %s; run UPDATE_GOLDEN=1 go test ./pkg/image -run Pinned",
						r.sumsFile(), line)
				}
			}
		}
	}
}

func updateSums(t *testing.T) {
	all := map[string]map[string]bool{}
	for _, r := range catalogueRecipes(t) {
		file := r.sumsFile()
		if all[file] == nil {
			all[file] = map[string]bool{}
		}
		for _, arch := range config.Arches {
			for line := range strings.Lines(string(sumsFor(t, r, arch))) {
				all[file][line] = true
			}
		}
	}
	for file, lines := range all {
		text := strings.Join(slices.Sorted(maps.Keys(lines)), "")
		must.Write(t, filepath.Join("recipes", file), text)
	}
}

// sumsFor has the toolchain find all packages, and returns the go.sum that it
// writes.
func sumsFor(t *testing.T, r Recipe, arch string) (sums []byte) {
	t.Helper()
	b := &Builder{Cache: cache.Dir()}
	must.NoError(t, b.prepare(t.Context(), &r))
	c := compilationOf(t, b, r, arch)
	c.sums = ""
	err := c.inModule(func(work string) error {
		find := host.Command{
			Args: append([]string{"go", "list", "-deps"}, r.Packages...), Dir: work,
			Env: append(slices.Clone(goEnv), c.env...),
		}
		if _, err := find.Run(t.Context()); err != nil {
			return err
		}
		var err error
		sums, err = os.ReadFile(filepath.Join(work, "go.sum"))
		return err
	})
	must.NoError(t, err)
	return sums
}

func compilationOf(t *testing.T, b *Builder, r Recipe, arch string) compilation {
	t.Helper()
	c, err := b.compilation(t.Context(), r, arch)
	must.NoError(t, err)
	return c
}

// TestAnotherModuleIsRefused: a module whose content differs from its pinned
// checksum is not compiled, also where no checksum database is asked.
func TestAnotherModuleIsRefused(t *testing.T) {
	v, err := For(catalog.Newest().Patch, Versions{})
	must.NoError(t, err)
	c := compilationOf(t, &Builder{Cache: cache.Dir()}, v.Recipe("cni"), runtime.GOARCH)
	const sum = "github.com/containernetworking/plugins v1.9.1 h1:"
	before, after, pinned := strings.Cut(c.sums, sum)
	if !pinned {
		t.Fatalf("%s is not pinned", sum)
	}
	c.sums = before + sum + "AAAAAAAA" + after[len("AAAAAAAA"):]
	c.env = append(c.env, "GONOSUMDB=*", "GOFLAGS=-mod=mod -modcacherw")
	err = c.run(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "checksum mismatch") {
		t.Errorf("got %v", err)
	}
}
