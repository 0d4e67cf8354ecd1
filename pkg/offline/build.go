package offline

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// HostPath is where a host keeps its bundle.
const HostPath = host.StateDir + "/bundle.tar.zst"

// Options say what to build.
type Options struct {
	Versions  image.Versions
	Archs     []string // none: this machine's
	Images    []string // by name, "pause"; none: all that a cluster needs
	Output    string   // "": DefaultPath
	BaseImage string   // userland of the images, instead of Debian packages
	K8sDir    string   // a checkout of Kubernetes to build, instead of the module
	Base      string   // a bundle: what it has is left out
	SignKey   string   // file of the key to sign with
	Quick     bool     // compress for this machine, where size is no matter
}

// DefaultPath is where Build puts a bundle that is given no other place.
func DefaultPath(v image.Versions, what ...string) string {
	return filepath.Join(image.CacheDir(), "bundles", "kubernetes-"+v.Kubernetes+"-"+strings.Join(what, "-")+".tar.zst")
}

// Build makes all images from source, writes them into a bundle and returns
// its path. What is there already and would come out the same is kept.
func Build(ctx context.Context, o Options) (string, error) {
	if len(o.Archs) == 0 {
		o.Archs = []string{runtime.GOARCH}
	}
	if o.Output == "" {
		o.Output = DefaultPath(o.Versions, append(slices.Clone(o.Archs), o.Images...)...)
	}
	if len(o.wanted()) < len(o.Images) {
		return "", fmt.Errorf("images %s: one of them is none of a cluster's, or is named twice", strings.Join(o.Images, ","))
	}
	// What is wrong with these is told before minutes of building.
	finish, err := o.finishing()
	if err != nil {
		return "", err
	}
	built, err := o.images(ctx)
	if err != nil {
		return "", err
	}
	return o.Output, o.put(ctx, built, finish)
}

// put writes a bundle of the images, unless it is there already.
func (o Options) put(ctx context.Context, built []image.Built, finish func(*contents) error) error {
	contents, err := collect(o.Versions, built)
	if err == nil {
		err = finish(contents)
	}
	if err == nil && !o.Quick {
		contents.packing = dense(ctx)
	}
	if err != nil || alreadyThere(o, contents) {
		return err
	}
	if err := write(ctx, o.Output, contents); err != nil {
		return fmt.Errorf("write bundle %s: %w", o.Output, err)
	}
	return nil
}

func (o Options) wanted() []image.Image {
	return slices.DeleteFunc(image.Catalogue(o.Versions, ""), func(i image.Image) bool {
		return len(o.Images) > 0 && !slices.Contains(o.Images, i.Name)
	})
}

// images builds all images for all architectures.
func (o Options) images(ctx context.Context) (built []image.Built, err error) {
	builder := &image.Builder{Cache: image.CacheDir(), BaseImage: o.BaseImage, K8sDir: o.K8sDir}
	for _, arch := range o.Archs {
		for _, img := range o.wanted() {
			one, err := builder.Build(ctx, o.Versions, img, arch)
			if err != nil {
				return nil, fmt.Errorf("build %s: %w", img.Ref, err)
			}
			built = append(built, one)
		}
	}
	return built, nil
}

// finishing reads the key and the base, and returns what applies them.
func (o Options) finishing() (func(*contents) error, error) {
	var key ed25519.PrivateKey
	if o.SignKey != "" {
		var err error
		if key, err = readSignKey(o.SignKey); err != nil {
			return nil, fmt.Errorf("sign key: %w", err)
		}
	}
	var base *Bundle
	if o.Base != "" {
		var err error
		if base, err = Open(o.Base); err != nil {
			return nil, fmt.Errorf("base: %w", err)
		}
		defer base.Close() // what it holds is in its manifest
	}
	return func(c *contents) error {
		c.signBy(key)
		if base == nil {
			return nil
		}
		return c.leaveOut(base)
	}, nil
}

// alreadyThere reports whether the bundle is there, packed at least as well.
func alreadyThere(o Options, c *contents) bool {
	old, err := Open(o.Output)
	if err != nil {
		return false
	}
	defer old.Close()
	return old.Key == c.manifest.Key && (o.Quick || old.Packing == c.packing.name)
}

// List names the images of a cluster, as they are called below the prefix.
func List(v image.Versions, prefix string) []string {
	var refs []string
	for _, img := range image.Catalogue(v, prefix) {
		refs = append(refs, img.Ref)
	}
	return refs
}
