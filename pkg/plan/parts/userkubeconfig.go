package parts

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
)

// UserKubeconfig returns a kubeconfig for a user of the cluster whose control
// plane this host is.
func UserKubeconfig(u controlplane.User) ([]byte, error) {
	saved, err := local.ReadSaved(host.Files{})
	if err != nil {
		return nil, err
	}
	h, err := local.Open(saved.Config)
	if err != nil {
		return nil, err
	}
	return PKI(h).UserKubeconfig(u)
}
