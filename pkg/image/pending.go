package image

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Pending is a program that must be compiled, because the cache does not have it.
type Pending struct {
	Recipe Recipe
	Arch   string
}

// String returns a text like "hyperkube v1.37.2 for amd64".
func (p Pending) String() string {
	return fmt.Sprintf("%s %s for %s", p.Recipe.Name, p.Recipe.Version, p.Arch)
}

// Recipes returns the recipes of images, in the order in which Build compiles them.
func (v Versions) Recipes(images []Image) (all []Recipe) {
	for _, img := range images {
		if shapeOf(img.Name).plugins {
			all = append(all, v.Recipe("cni"))
		}
		all = append(all, v.Recipe(img.Name))
	}
	return all
}

// Pending returns the recipes that must be compiled. It downloads nothing.
func (b *Builder) Pending(ctx context.Context, recipes []Recipe, arch string) (all []Pending, err error) {
	for _, r := range recipes {
		compiled, err := b.compiled(ctx, r, arch)
		if err != nil {
			return nil, err
		}
		if !compiled {
			all = append(all, Pending{r, arch})
		}
	}
	return all, nil
}

// Release returns the step that finds the Kubernetes release of pending programs, so that a version
// that does not exist fails before anything is compiled; the zero step without such programs.
func (b *Builder) Release(all []Pending) step.Step {
	i := slices.IndexFunc(all,
		func(p Pending) bool { return p.Recipe.Require["k8s.io/kubernetes"] != "" && b.K8sDir == "" })
	if i < 0 {
		return step.Step{}
	}
	release := all[i].Recipe
	return step.Always("find-sources", "find the sources of Kubernetes "+release.Version,
		func(ctx context.Context) error {
			return b.prepare(ctx, &release)
		})
}

// compiled reports whether the cache has what a recipe is compiled to.
func (b *Builder) compiled(ctx context.Context, r Recipe, arch string) (bool, error) {
	ofRelease := r.Require["k8s.io/kubernetes"] != "" && b.K8sDir == ""
	if ofRelease && !cache.Has(b.Cache, r.releasePart()) {
		return false, nil // prepare would download it
	}
	if err := b.prepare(ctx, &r); err != nil {
		return false, err
	}
	c, part, err := b.resolve(ctx, r, arch)
	return err == nil && cache.Has(b.Cache, c.partName(part)), err
}

// Step returns the step that compiles a program into the cache.
func (b *Builder) Step(p Pending) step.Step {
	name := "compile " + p.String()
	return step.Always(step.IDOf("compile", p.String()), name, func(ctx context.Context) error {
		_, err := b.Compile(step.WithReporter(ctx, func(message string, bytes, total int64) {
			step.Report(ctx, strings.TrimPrefix(message, name+": "), bytes, total)
		}), p.Recipe, p.Arch)
		return err
	})
}

// firstCompile lists how long each program takes to compile on two CPUs, if Go's
// build cache is empty and the programs are compiled in this order. Most packages of
// the suite are compiled for hyperkube.
var firstCompile = map[string]time.Duration{
	"etcd":                   25 * time.Second,
	"flannel":                80 * time.Second,
	"cni":                    10 * time.Second,
	"hyperkube":              390 * time.Second,
	"coredns":                100 * time.Second,
	"metrics-server":         110 * time.Second,
	"local-path-provisioner": 10 * time.Second,
	"metallb-controller":     100 * time.Second,
	"metallb-speaker":        5 * time.Second,
	"suite":                  80 * time.Second,
}

const firstCPUs = 2 // of firstCompile

// diskRate is the growth of Go's caches in bytes per second of firstCompile.
const diskRate = 14 << 20

// Effort is what it takes to compile programs.
type Effort struct {
	Programs int
	Duration time.Duration // of the last time on this machine, or expected
	Bytes    int64         // of disk, expected
}

// Effort returns the effort of all programs in pending.
func (b *Builder) Effort(pending []Pending, cpus int) Effort {
	e := Effort{Programs: len(pending)}
	for _, p := range pending {
		first := firstCompile[p.Recipe.Name]
		e.Bytes += int64(first.Seconds()) * diskRate
		if last, err := cache.Duration(b.Cache, p.Recipe.Name); err == nil {
			e.Duration += last
		} else {
			e.Duration += first * firstCPUs / time.Duration(cpus)
		}
	}
	return e
}
