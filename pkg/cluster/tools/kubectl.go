package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
)

// Kubectl is a kubectl of the cluster's version on this machine, and the admin's
// kubeconfig for it.
type Kubectl struct{ Program, Kubeconfig string }

// OpenKubectl copies kubectl from a control plane into the cache, once per image
// of the kubelet, and writes the kubeconfig to a file that only this user reads.
func OpenKubectl(ctx context.Context, options session.Options) (k Kubectl, err error) {
	err = session.Do(ctx, options, session.Scope{}, func(s *session.Session, _ topology.State) error {
		master, err := s.RunningMaster(ctx, "")
		if err != nil {
			return err
		}
		dir, err := copyKubectl(ctx, s.CacheDir, s.Node(master.Name))
		if err != nil {
			return fmt.Errorf("copy kubectl from %s: %w", master.Name, err)
		}
		data, err := apiserver.Read(ctx, s, "")
		if err != nil {
			return err
		}
		k = Kubectl{filepath.Join(dir, "kubectl"), filepath.Join(s.PrivateDir(), "admin.conf")}
		if err := os.MkdirAll(s.PrivateDir(), 0o700); err != nil {
			return err
		}
		return host.WriteFile(k.Kubeconfig, data, 0o600)
	})
	return k, err
}

func copyKubectl(ctx context.Context, cacheDir string, from driver.Node) (dir string, err error) {
	var id bytes.Buffer
	if err := from.Exec(ctx, driver.Exec{Args: []string{"docker", "inspect", "-f", "{{.Image}}", "kubelet"}, Stdout: &id}); err != nil {
		return "", err
	}
	sum := strings.TrimPrefix(strings.TrimSpace(id.String()), "sha256:")
	return cache.Get(ctx, cacheDir, "kubectl-"+sum[:min(16, len(sum))], func(dir string) error {
		file, err := os.OpenFile(filepath.Join(dir, "kubectl"), os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		err = from.Exec(ctx, driver.Exec{Args: []string{"docker", "exec", "kubelet", "cat", "/usr/local/bin/kubectl"}, Stdout: file})
		return errors.Join(err, file.Close())
	})
}
