package membership

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Leave removes this host from a cluster that continues without it: its etcd
// member and its node. A worker may not do this itself and asks the control
// planes. The only control plane has nobody to notify. left lists harmless
// failures; with force, it lists all failures.
func Leave(ctx context.Context, h *local.Host, force bool) (left []string, err error) {
	ctx = h.Limited(ctx)
	name := h.Config.HostName
	switch {
	case h.Saved.Role == local.Worker:
		return depart(ctx, h), nil
	case h.Saved.Role != local.Master || len(parts.Others(h)) == 0:
		return nil, nil
	}
	goodbye := func(ctx context.Context, client *clientv3.Client) error { return expel(ctx, h, client, name) }
	if err := parts.EtcdMember(h).Leave(ctx, goodbye); err != nil {
		if !force {
			return nil, err
		}
		left = append(left, err.Error())
	}
	// A kubelet that is about to register, as after a boot, would create the
	// node again.
	if err := parts.Kubelet(h, local.Master).Start().Undo(ctx); err != nil {
		return left, err
	}
	if err := removeNode(ctx, h, name); err != nil {
		left = append(left, err.Error()+"; `kubectl delete node "+name+"` on another control plane removes it")
	}
	return left, nil
}

// depart asks the control planes to remove this worker. It stops the kubelet,
// which would otherwise create the node again.
func depart(ctx context.Context, h *local.Host) (left []string) {
	err := parts.Kubelet(h, local.Worker).Start().Undo(ctx)
	if err == nil {
		err = parts.Node(h, kubelet.Kubeconfig).Depart(step.WithLimit(ctx, step.CheckLimit(ctx)))
	}
	// A host without this kubeconfig has no node, or an earlier turndown has
	// asked.
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		name := h.Config.HostName
		left = append(left, fmt.Sprintf("node %s is listed, and its certificates are valid, until `kube-bootstrap forget %s` on a control plane: %v", name, name, err))
	}
	return left
}
