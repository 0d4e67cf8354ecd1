package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// Kubectl is a kubectl of the cluster's version on this machine, and the admin's
// kubeconfig for it.
type Kubectl struct{ Program, Kubeconfig string }

// OpenKubectl copies kubectl from a control plane into the cache, once per image
// of the kubelet, and writes the kubeconfig to a file that only this user reads.
func OpenKubectl(ctx context.Context, options Options) (Kubectl, error) {
	f, err := open(options, nil)
	if err != nil {
		return Kubectl{}, err
	}
	defer f.docker.Close()
	master, err := f.firstMaster(ctx, "")
	if err != nil {
		return Kubectl{}, err
	}
	dir, err := f.copyKubectl(ctx, driver.OpenDocker(f.docker, master.Name))
	if err != nil {
		return Kubectl{}, fmt.Errorf("copy kubectl from %s: %w", master.Name, err)
	}
	data, err := f.kubeconfig(ctx, "")
	if err != nil {
		return Kubectl{}, err
	}
	k := Kubectl{filepath.Join(dir, "kubectl"), filepath.Join(f.privateDir(), "admin.conf")}
	if err := os.MkdirAll(f.privateDir(), 0o700); err != nil {
		return Kubectl{}, err
	}
	return k, host.WriteFile(k.Kubeconfig, data, 0o600)
}

func (f *fleet) copyKubectl(ctx context.Context, from driver.Node) (dir string, err error) {
	var id bytes.Buffer
	if err := from.Exec(ctx, driver.Exec{Args: []string{"docker", "inspect", "-f", "{{.Image}}", "kubelet"}, Stdout: &id}); err != nil {
		return "", err
	}
	sum := strings.TrimPrefix(strings.TrimSpace(id.String()), "sha256:")
	return image.Cached(ctx, f.CacheDir, "kubectl-"+sum[:min(16, len(sum))], func(dir string) error {
		file, err := os.OpenFile(filepath.Join(dir, "kubectl"), os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		err = from.Exec(ctx, driver.Exec{Args: []string{"docker", "exec", "kubelet", "cat", "/usr/local/bin/kubectl"}, Stdout: file})
		return errors.Join(err, file.Close())
	})
}
