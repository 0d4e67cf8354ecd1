package membership

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Forget removes a dead host from the cluster: its etcd member and users, so
// that its certificates are useless, its flannel subnet, and its node. It
// must run on a control plane. A second call completes an interrupted one.
func Forget(ctx context.Context, h *local.Host, name string) error {
	ctx = h.Limited(ctx)
	ip, err := parts.EtcdMember(h).Forget(ctx, name)
	if ip == "" && err == nil {
		ip, err = parts.Anywhere(h, name).Dead(ctx)
	}
	if err != nil {
		return err
	}
	if ip == "" && !hasPlace(ctx, h, name) {
		return &step.Problem{Name: "node-unknown", Text: "the cluster has no host " + name, Remedy: "use a name that `kubectl get nodes` lists"}
	}
	return removeHost(ctx, h, name)
}

// hasPlace reports whether a host has an etcd user, which a host gets when it
// begins to join.
func hasPlace(ctx context.Context, h *local.Host, name string) (has bool) {
	err := parts.Etcd(h).Do(ctx, func(client *clientv3.Client) (err error) {
		has, err = etcd.Admitted(ctx, client, name)
		return err
	})
	return err == nil && has
}

// removeNode deletes the node. It gives up after CheckLimit, because the host
// can leave without this.
func removeNode(ctx context.Context, h *local.Host, name string) error {
	return step.Until(step.WithLimit(ctx, step.CheckLimit(ctx)), parts.Anywhere(h, name).Remove, nil)
}
