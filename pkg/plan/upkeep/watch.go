package upkeep

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// refreshHostFilter updates the addresses of the filter after changes, without the
// lock of this host. It runs beside the watches, because addresses may change
// faster than the filter is written. The reconciler of the filter reports errors.
func (r Agent) refreshHostFilter(ctx context.Context) error {
	agent.Follow(ctx, r.hosts, func(ctx context.Context) error {
		h, err := r.settings.Host()
		if err != nil || !h.ManagesNetwork() {
			return nil
		}
		ctx, cancel := step.Checking(ctx)
		defer cancel()
		_ = parts.InForce(h).Network.Filter.Refresh(ctx)
		return nil
	}, nil)
	return nil
}

// refuse acts after each change of the removed nodes and of the requests.
func (r Agent) refuse(ctx context.Context, p parts.Parts) error {
	changed, own := agent.NewSignal(), p.Etcd.Client
	asked := requests(certificatesv1.KubeAPIServerClientKubeletSignerName)
	go kube.Follow(ctx, asked, func(watch.Event) { changed.Give() })
	follow := func(ctx context.Context) error {
		return own.Do(ctx, func(client *clientv3.Client) error { return etcd.FollowRemoved(ctx, client, changed.Give) })
	}
	go agent.Forever(ctx, func(ctx context.Context) error {
		return agent.WhileUnchanged(ctx, own.Credentials.Files, follow, join.EtcdCAFile)
	}, r.failed("follow removed nodes"))
	refuse := func(ctx context.Context) error { return membership.RefuseRemoved(ctx, own) }
	agent.Follow(ctx, changed, limited(refuse), r.failed("refuse removed nodes"))
	return nil
}

// report returns the part that reports each change of the state of a rotation.
func (r Agent) report(state kube.Watch) func(context.Context) error {
	return func(ctx context.Context) error {
		kube.Follow(ctx, state, func(watch.Event) { r.in.Put(agent.Cluster) })
		return nil
	}
}

// watchNodes watches the nodes. It removes workers from the cluster as they ask for
// it, and reports nodes that are added, deleted or change between Ready and NotReady.
func (r Agent) watchNodes(ctx context.Context, p parts.Parts) error {
	departs, turned, ready := agent.NewSignal(), agent.NewSignal(), map[string]bool{}
	go kube.Follow(ctx, node.Watch(kube.Kubeconfig(controlplane.AgentConf)), func(e watch.Event) {
		n, ok := e.Object.(*corev1.Node)
		if !ok {
			return
		}
		if e.Type != watch.Deleted && node.Departs(n) {
			departs.Give()
		}
		if e.Type != watch.Modified || ready[n.Name] != node.Ready(n) {
			ready[n.Name] = node.Ready(n)
			turned.Give()
		}
	})
	// It reports each change several times, because the node's pods follow later.
	go agent.Follow(ctx, turned, func(context.Context) error { r.in.Put(agent.Cluster); return nil }, nil)
	remove := func(ctx context.Context) error { return membership.RemoveDeparting(ctx, p.Etcd, p.Cluster) }
	agent.Follow(ctx, departs, limited(remove), r.failed("let hosts go"))
	return nil
}

// serveEtcd runs the gate of this control plane. Other authorities close all connections.
func serveEtcd(ctx context.Context, p parts.Parts) error {
	own := p.Etcd.Client
	return agent.WhileUnchanged(ctx, own.Credentials.Files, parts.Gate(own).Serve, join.EtcdCAFile)
}

// formerPause is the time between two questions to the other control planes.
const formerPause = 15 * time.Second

// leaveFormer stops the etcd of this host if the cluster has continued without it. After a boot, it would otherwise
// form the cluster of before with others that were lost too.
func (r Agent) leaveFormer(ctx context.Context) error {
	for ; ctx.Err() == nil; _ = step.Pause(ctx, formerPause) {
		h, err := r.settings.Host()
		if err != nil || !local.Complete(h.Files) {
			continue // a run may be adding this host
		}
		own, limited := parts.InForce(h).Etcd.Container, h.Limited(ctx)
		outside := own.Member.Outside(limited)
		if _, runs, err := own.RunningSince(limited); outside != nil && (runs || err != nil) {
			r.failed("leave a former cluster")(errors.Join(outside, err, own.Stop(limited)))
		}
	}
	return nil
}

// keepRoom keeps the database of etcd below its quota.
func (r Agent) keepRoom(ctx context.Context, p parts.Parts) error {
	return agent.WhileUnchanged(ctx, p.Etcd.Client.Credentials.Files, func(ctx context.Context) error {
		return p.Etcd.Container.Database().KeepRoom(ctx, r.failed("etcd"))
	}, join.EtcdCAFile)
}

func (r Agent) watchFiles(ctx context.Context, p parts.Parts) error {
	dirs := []string{image.CNIDir}
	if p.Network.Leases() {
		dirs = append(dirs, p.Network.Flanneld.SubnetDir, maindocker.SettingsDir)
	}
	return agent.WatchFiles(ctx, r.in, dirs...)
}

// watchLeases watches the leases of other hosts, in addition to flanneld,
// which may miss one after its connection to etcd broke.
func (r Agent) watchLeases(ctx context.Context, p parts.Parts) error {
	if !p.Network.Leases() {
		<-ctx.Done()
		return nil
	}
	known := p.Network.Flanneld.Etcd
	return agent.WhileUnchanged(ctx, known.Files, func(ctx context.Context) error {
		return known.WatchLeases(ctx, func() {
			r.in.Put(agent.Lease)
			r.hosts.Give()
			r.logSkipped(ctx, known)
		})
	}, join.EtcdCAFile)
}

// logSkipped logs the leases that this host ignores.
func (r Agent) logSkipped(ctx context.Context, known flannel.EtcdAccess) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	skipped, err := known.Skipped(ctx)
	if err = errors.Join(append(skipped, err)...); err != nil {
		r.failed("read the leases")(err)
	}
}
