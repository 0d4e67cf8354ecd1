package offline

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
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
	Output    string   // "": DefaultPath
	BaseImage string   // userland of the images, instead of Debian packages
	K8sDir    string   // a checkout of Kubernetes to build, instead of the module
}

// DefaultPath is where Build puts a bundle that is given no other place.
func DefaultPath(v image.Versions, archs ...string) string {
	return filepath.Join(image.CacheDir(), "bundles", "kubernetes-"+v.Kubernetes+"-"+strings.Join(archs, "-")+".tar.zst")
}

// Build makes all images from source, writes them into a bundle and returns
// its path. What is there already and would come out the same is kept.
func Build(ctx context.Context, o Options) (string, error) {
	if len(o.Archs) == 0 {
		o.Archs = []string{runtime.GOARCH}
	}
	if o.Output == "" {
		o.Output = DefaultPath(o.Versions, o.Archs...)
	}
	builder := &image.Builder{Cache: image.CacheDir(), BaseImage: o.BaseImage, K8sDir: o.K8sDir}
	var built []image.Built
	for _, arch := range o.Archs {
		for _, img := range image.Catalogue(o.Versions, "") {
			one, err := builder.Build(ctx, o.Versions, img, arch)
			if err != nil {
				return "", fmt.Errorf("build %s: %w", img.Ref, err)
			}
			built = append(built, one)
		}
	}
	contents, err := collect(o.Versions, built)
	if err != nil {
		return "", err
	}
	if old, err := Open(o.Output); err == nil {
		defer old.Close()
		if old.Key == contents.manifest.Key {
			return o.Output, nil
		}
	}
	if err := write(ctx, o.Output, contents); err != nil {
		return "", fmt.Errorf("write bundle %s: %w", o.Output, err)
	}
	return o.Output, nil
}

// List names the images of a cluster, as they are called below the prefix.
func List(v image.Versions, prefix string) []string {
	var refs []string
	for _, img := range image.Catalogue(v, prefix) {
		refs = append(refs, img.Ref)
	}
	return refs
}
