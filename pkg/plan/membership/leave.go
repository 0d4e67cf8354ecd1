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

// Leave removes this control plane from a cluster that continues without it: its
// etcd member and its node. The only control plane has nobody to notify. Workers
// leave otherwise, see Depart. left lists harmless failures; with force, it lists
// all failures.
func Leave(ctx context.Context, h *local.Host, force bool) (left []string, err error) {
	ctx = h.Limited(ctx)
	name := h.Config.HostName
	if h.Saved.Role != local.Master || len(parts.Others(h)) == 0 {
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

// Depart returns an Undo that asks the control planes to remove this worker, which it
// may not do itself. The kubelet must be stopped before, as it would create the node
// again. If no control plane answers, Depart reports that with step.Leave.
func Depart(h *local.Host) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := step.Limited(step.WithLimit(ctx, step.CheckLimit(ctx)))
		defer cancel()
		err := parts.Node(h, kubelet.Kubeconfig).Depart(ctx)
		// A host without this kubeconfig has no node, or an earlier turndown has asked.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			name := h.Config.HostName
			step.Leave(ctx, fmt.Sprintf("node %s is listed, and its certificates are valid, until `kube-bootstrap forget %s` on a control plane: %v", name, name, err))
		}
		return nil
	}
}
