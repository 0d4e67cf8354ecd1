package bundles

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Images are the bundle that hosts of this machine's architecture load.
type Images struct {
	Plan   step.Plan // makes the bundle
	Bundle string    // its path
	// Base makes a bundle without the images of addons. It is set if programs of addons must be
	// compiled, which takes minutes, and a cluster without addons can be created first.
	Base *Images
}

// ForHosts returns what the cache has, else what is official where that can be
// reached, else what is built from source.
func ForHosts(ctx context.Context, say func(string), cfg config.Config) (Images, error) {
	v, err := Versions(cfg)
	if err != nil {
		return Images{}, err
	}
	if path := offline.PulledPath(v, runtime.GOARCH); holds(path, v) {
		return Images{Bundle: path}, nil
	}
	for _, o := range []offline.BuildOptions{buildAll(v), buildOf(v, cfg.Addons)} {
		if holds(o.Output, v) {
			return building(ctx, say, o, nil)
		}
	}
	o, err := offline.PullOptions{Versions: v, Quick: true}.From(cfg)
	if err != nil {
		return Images{}, err
	}
	p, err := offline.NewPull(o)
	if err != nil {
		return Images{}, err
	}
	if err := p.Reachable(ctx); err != nil {
		say("the official images cannot be pulled from here, so they are built from source: " + unreached(err))
		base := buildOf(v, nil)
		return building(ctx, say, buildOf(v, cfg.Addons), &base)
	}
	say("the official registries answer: their images are pulled")
	return Images{Plan: p.Plan(), Bundle: p.Output}, nil
}

// unreached lists what cannot be reached, and why.
func unreached(err error) string {
	var all []string
	for _, p := range step.Problems(err) {
		all = append(all, p.Text)
	}
	return strings.Join(all, "; ")
}

func holds(path string, v image.Versions) bool {
	b, err := bundle.Open(path)
	if err != nil {
		return false
	}
	defer b.Close()
	return reflect.DeepEqual(b.Manifest.Versions, v)
}

// buildAll returns the build of a bundle of all images.
func buildAll(v image.Versions) offline.BuildOptions {
	return offline.BuildOptions{Versions: v, Quick: true, Output: offline.DefaultPath(v, runtime.GOARCH)}
}

// buildOf returns the build of a bundle without the images of other addons, which take minutes to compile.
func buildOf(v image.Versions, addons []string) offline.BuildOptions {
	o := buildAll(v)
	o.Images = imagesWith(v, addons)
	o.Output = offline.DefaultPath(v,
		append([]string{runtime.GOARCH, "cluster"}, o.Images[len(imagesWith(v, nil)):]...)...)
	return o
}

// building returns the build of a bundle, and of its base if fewer programs must be compiled for that.
func building(
	ctx context.Context, say func(string), o offline.BuildOptions, base *offline.BuildOptions,
) (Images, error) {
	all, err := offline.NewBuild(ctx, o)
	if err != nil {
		return Images{}, err
	}
	SayEffort(say, all.Effort)
	images := Images{Plan: all.Plan, Bundle: all.Bundle}
	if base == nil {
		return images, nil
	}
	first, err := offline.NewBuild(ctx, *base)
	if first.Effort.Programs < all.Effort.Programs {
		images.Base = &Images{Plan: first.Plan, Bundle: first.Bundle}
	}
	return images, err
}

// imagesWith returns the names of the images of every cluster, and then of those of the addons.
func imagesWith(v image.Versions, addons []string) (names []string) {
	all := image.Catalogue(v, "")
	for _, i := range image.OfEveryCluster(all) {
		names = append(names, i.Name)
	}
	for _, i := range all {
		if i.Addon != "" && slices.Contains(addons, i.Addon) {
			names = append(names, i.Name)
		}
	}
	return names
}

// HasAddons reports whether a bundle has the images of these addons.
func HasAddons(path string, addons []string) bool {
	b, err := bundle.Open(path)
	if err != nil {
		return false
	}
	defer b.Close()
	return !slices.ContainsFunc(image.Catalogue(b.Manifest.Versions, ""), func(i image.Image) bool {
		return i.Addon != "" && slices.Contains(addons, i.Addon) && !b.Manifest.Holds(i.Ref)
	})
}

// SayEffort says what a build takes, unless everything was compiled before.
func SayEffort(say func(string), e image.Effort) {
	if e.Programs == 0 {
		return
	}
	minutes := int(e.Duration.Minutes()) + 1
	say(fmt.Sprintf("programs to compile, once: %d; this takes about %d min here, and %d GB of disk in %s and in "+
		"Go's caches",
		e.Programs, minutes, e.Bytes>>30+1, cache.Dir()))
}

// Versions are those of the components that the settings ask for.
func Versions(cfg config.Config) (image.Versions, error) {
	v, err := image.For(cfg.KubernetesVersion, image.Versions{Etcd: cfg.EtcdVersion, Flannel: cfg.FlannelVersion})
	return v, exit.Usage(err)
}

// Checkout is the directory to build Kubernetes from; "" if none was named.
func Checkout(cfg config.Config, v image.Versions) (string, error) {
	if cfg.K8sDir == "" {
		return "", nil
	}
	dir, err := filepath.Abs(cfg.K8sDir)
	if err != nil {
		return "", err
	}
	return dir, image.CheckCheckout(dir, v)
}
