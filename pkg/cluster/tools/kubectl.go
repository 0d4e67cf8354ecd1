package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Kubectl is a kubectl of the cluster's version, and the environment for it: the admin's
// kubeconfig, and no proxy on the way to the cluster.
type Kubectl struct {
	Program string
	Env     []string
}

// kubectlPath is the path of kubectl in the image of the kubelet.
const kubectlPath = "usr/local/bin/kubectl"

// OpenKubectl copies kubectl into the cache, once per image of the kubelet, and writes the
// kubeconfig to a file that only this user reads.
func OpenKubectl(ctx context.Context, options session.Selection, variable func(string) string) (Kubectl, error) {
	return session.Get(ctx, options, session.Requirements{},
		func(s *session.Session, _ topology.State) (k Kubectl, err error) {
			controlPlane, err := s.RunningControlPlane(ctx, "")
			if err != nil {
				return k, err
			}
			dir, err := copyKubectl(ctx, s, controlPlane.Name)
			if err != nil {
				return k, err
			}
			data, err := apiserver.Read(ctx, s, "")
			if err != nil {
				return k, err
			}
			config, err := s.WritePrivate("admin.conf", data)
			if err != nil {
				return k, err
			}
			direct, err := kube.NoProxy(config, variable)
			return Kubectl{filepath.Join(dir, "kubectl"), []string{"KUBECONFIG=" + config, direct}}, err
		})
}

// copyKubectl returns the directory of the cache that contains kubectl. Root of a node that runs on
// this machine may be root of this machine already, as in a privileged container, and kubectl can
// come from there. A node elsewhere has no rights on this machine: then kubectl comes from the bundle.
func copyKubectl(ctx context.Context, s *session.Session, controlPlane string) (string, error) {
	if s.Provider.OnThisMachine() {
		dir, err := copyFromNode(ctx, s.CacheDir, s.Node(controlPlane))
		return dir, step.Wrap(err, "copy kubectl from %s", controlPlane)
	}
	path := s.Bundle()
	if path == "" {
		return "", &step.Problem{
			Name: "kubectl-bundle",
			Text: "the engine is remote, and this machine does not have the bundle of cluster " + s.Name +
				", which contains kubectl",
			Remedy: "run `kube-bootstrap cluster up --name " + s.Name +
				"` on this machine with the bundle, or use another kubectl with the file that `kube-bootstrap " +
				"cluster kubeconfig` prints",
			Firm: true,
		}
	}
	return copyFromBundle(ctx, s.CacheDir, path, runtime.GOARCH)
}

// OtherArch is the problem that the kubectl of the cluster cannot run on this machine.
func OtherArch() error {
	return &step.Problem{
		Name: "kubectl-arch", Text: "the kubectl of the cluster is a program for another architecture than this " +
			"machine's",
		Remedy: "run it on a control plane: `kube-bootstrap node ssh NODE -- kubectl ...`",
	}
}

func copyFromBundle(ctx context.Context, cacheDir, path, arch string) (string, error) {
	b, err := bundle.Open(path)
	if err != nil {
		return "", err
	}
	defer b.Close()
	if !slices.Contains(b.Archs(), arch) {
		return "", OtherArch()
	}
	ref := image.ProgramRef(b.Manifest.Versions, "kubectl")
	found, err := b.Find(ref, arch)
	if err != nil {
		return "", err
	}
	return saveKubectl(ctx, cacheDir, found.Platforms[arch].Manifest, func(w io.Writer) error {
		return bundle.CopyFile(b, w, ref, arch, kubectlPath)
	})
}

func copyFromNode(ctx context.Context, cacheDir string, from access.Connection) (string, error) {
	id, err := access.Output(ctx, from, "docker", "inspect", "-f", "{{.Image}}", "kubelet")
	if err != nil {
		return "", err
	}
	sum, err := digest.Parse(strings.TrimSpace(id)) // it becomes a part of a path
	if err != nil {
		return "", fmt.Errorf("image %q of the kubelet: %w", id, err)
	}
	return saveKubectl(ctx, cacheDir, sum, func(w io.Writer) error {
		return from.Exec(ctx, host.Command{
			Args: []string{"docker", "exec", "kubelet", "cat", "/" + kubectlPath}, Stdout: w,
		})
	})
}

func saveKubectl(ctx context.Context, cacheDir string, sum digest.Digest, write func(io.Writer) error) (string, error) {
	return cache.Get(ctx, cacheDir, "kubectl-"+sum.Encoded()[:16], func(dir string) error {
		file, err := os.OpenFile(filepath.Join(dir, "kubectl"), os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Close())
	})
}
