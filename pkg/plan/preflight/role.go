package preflight

import (
	"context"
	"fmt"
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// firstProblem returns a problem if the first control plane of a cluster is
// told to join another one.
func firstProblem(h request) error {
	if h.role != local.Master || !h.Config.Join || h.Saved.Role != local.Master || h.Saved.Config.Join {
		return nil
	}
	return &step.Problem{Name: "role", Text: "--join: this host is the first control plane of another cluster",
		Remedy: "remove --join to repair this host, or run `kube-bootstrap turndown` first"}
}

func roleProblem(_ context.Context, h request) error {
	if h.Saved.Installed() && h.Saved.Role != h.role {
		return &step.Problem{Name: "role", Text: fmt.Sprintf("this host is already a %s", h.Saved.Role),
			Remedy: "run `kube-bootstrap turndown` first to make it a " + h.role}
	}
	if err := firstProblem(h); err != nil {
		return err
	}
	if !h.Saved.Installed() && h.Files.Exists("/etc/kubernetes/manifests") && !emptyDir(h.Host, "/etc/kubernetes/manifests") {
		return &step.Problem{Name: "role", Text: "/etc/kubernetes/manifests contains static pods of another cluster",
			Remedy: "remove that cluster first (`kubeadm reset`, if kubeadm made it)"}
	}
	return nil
}

// identityProblem returns a problem if the keys of the cluster were lost,
// because a control plane must not create new ones.
func identityProblem(_ context.Context, h request) error {
	if h.role != local.Master {
		return nil
	}
	return parts.PKI(h.Host).IdentityProblem()
}

func emptyDir(h *local.Host, dir string) bool {
	entries, err := os.ReadDir(h.Files.Path(dir))
	return err == nil && len(entries) == 0
}
