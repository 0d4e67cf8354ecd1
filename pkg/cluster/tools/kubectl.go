package tools

import (
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
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

// Kubectl is a kubectl of the cluster's version, and the environment for it: the admin's
// kubeconfig, and no proxy on the way to the cluster.
type Kubectl struct {
	Program string
	Env     []string
}

// OpenKubectl copies kubectl from a control plane into the cache, once per image
// of the kubelet, and writes the kubeconfig to a file that only this user reads.
func OpenKubectl(ctx context.Context, options session.Options, variable func(string) string) (Kubectl, error) {
	return session.Get(ctx, options, session.Scope{}, func(s *session.Session, _ topology.State) (k Kubectl, err error) {
		master, err := s.RunningMaster(ctx, "")
		if err != nil {
			return k, err
		}
		dir, err := copyKubectl(ctx, s.CacheDir, s.Node(master.Name))
		if err != nil {
			return k, fmt.Errorf("copy kubectl from %s: %w", master.Name, err)
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

func copyKubectl(ctx context.Context, cacheDir string, from driver.Node) (string, error) {
	id, err := from.Output(ctx, "docker", "inspect", "-f", "{{.Image}}", "kubelet")
	if err != nil {
		return "", err
	}
	sum := strings.TrimPrefix(strings.TrimSpace(id), "sha256:")
	return cache.Get(ctx, cacheDir, "kubectl-"+sum[:min(16, len(sum))], func(dir string) error {
		file, err := os.OpenFile(filepath.Join(dir, "kubectl"), os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		err = from.Exec(ctx, host.Command{Args: []string{"docker", "exec", "kubelet", "cat", "/usr/local/bin/kubectl"}, Stdout: file})
		return errors.Join(err, file.Close())
	})
}
