package plan

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Forget takes a host that died for good out of the cluster: out of etcd with its
// user, so that its certificate opens nothing, its subnet out of flannel's
// network, its node out of the API server's list. To be called on a control plane
// that lives. Run again, it finishes what is left.
func (h *Host) Forget(ctx context.Context, name string) error {
	ctx = h.limited(ctx)
	ip, err := h.etcd().Forget(ctx, name)
	if ip == "" && err == nil {
		ip, err = h.anywhere(name).Dead(ctx)
	}
	if err != nil {
		return err
	}
	if ip == "" && !h.hasPlace(ctx, name) {
		return &step.Problem{Name: "node-unknown", Text: "the cluster knows no host " + name, Remedy: "use a name that `kubectl get nodes` lists"}
	}
	return h.removeHost(ctx, name)
}

// hasPlace reports whether a host has a user of etcd, as one that has begun to
// join.
func (h *Host) hasPlace(ctx context.Context, name string) (has bool) {
	err := h.withEtcd(ctx, func(client *clientv3.Client) (err error) {
		has, err = etcd.Admitted(ctx, client, name)
		return err
	})
	return err == nil && has
}

// removeNode gives up after the time of a Check, because the host can leave
// without it.
func (h *Host) removeNode(ctx context.Context, name string) error {
	return step.Until(step.WithLimit(ctx, step.CheckLimit(ctx)), h.anywhere(name).Remove, nil)
}

// anywhere is a node in the eyes of whichever API server is ready, as that of
// this host may not be any more.
func (h *Host) anywhere(name string) node.Node {
	one := h.node(controlplane.SuperAdminConf)
	one.Name, one.API = name, h.anyServer(controlplane.SuperAdminConf)
	return one
}

// anyServer connects by a kubeconfig of this control plane to whichever API
// server is ready.
func (h *Host) anyServer(kubeconfig string) kube.Connect {
	own := kube.Kubeconfig(kubeconfig)
	return func() (*rest.Config, error) {
		config, err := own()
		if err == nil {
			config.Host = h.balancedAPI()
		}
		return config, err
	}
}
