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

// Forget removes a dead host from the cluster: its etcd member and users, so
// that its certificates are useless, its flannel subnet, and its node. It
// must run on a control plane. A second call completes an interrupted one.
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
		return &step.Problem{Name: "node-unknown", Text: "the cluster has no host " + name, Remedy: "use a name that `kubectl get nodes` lists"}
	}
	return h.removeHost(ctx, name)
}

// hasPlace reports whether a host has an etcd user, which a host gets when it
// begins to join.
func (h *Host) hasPlace(ctx context.Context, name string) (has bool) {
	err := h.withEtcd(ctx, func(client *clientv3.Client) (err error) {
		has, err = etcd.Admitted(ctx, client, name)
		return err
	})
	return err == nil && has
}

// removeNode deletes the node. It gives up after CheckLimit, because the host
// can leave without this.
func (h *Host) removeNode(ctx context.Context, name string) error {
	return step.Until(step.WithLimit(ctx, step.CheckLimit(ctx)), h.anywhere(name).Remove, nil)
}

// anywhere returns a node that uses any ready API server, because the API
// server of this host may have stopped.
func (h *Host) anywhere(name string) node.Node {
	one := h.node(controlplane.AdminConf)
	one.Name, one.API = name, h.anyServer(controlplane.AdminConf)
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
