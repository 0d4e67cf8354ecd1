package membership

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Leave removes this control plane from a cluster that continues without it: its etcd
// member and its node. The only control plane has nobody to notify. A worker leaves in
// the Undo of Joined. left lists harmless failures; with force, it lists all failures.
func Leave(ctx context.Context, h *local.Host, force bool) (left []string, err error) {
	ctx = h.Limited(ctx)
	name := h.Config.HostName
	p := parts.New(h, local.ControlPlane)
	if h.Saved.Role != local.ControlPlane || len(p.Etcd.Member.Peers) == 0 {
		return nil, nil
	}
	goodbye := func(ctx context.Context, client *clientv3.Client) error { return expel(ctx, client, name) }
	if err := p.Etcd.Member.Leave(ctx, goodbye); err != nil {
		if !force {
			return nil, err
		}
		left = append(left, err.Error())
	}
	// A kubelet that is about to register, as after a boot, would create the
	// node again.
	if err := p.Node.Kubelet.Start().Undo(ctx); err != nil {
		return left, err
	}
	if err := removeNode(ctx, p.Cluster, name); err != nil {
		left = append(left, err.Error()+"; `kubectl delete node "+name+"` on another control plane removes it")
	}
	return left, nil
}

// Joined is the step that waits until the kubelet of a worker has joined. Undo asks the
// control planes to remove the worker, which may not do this itself. It requires that the
// kubelet has stopped: a kubelet would create the node again.
func Joined(own parts.NodeComponents) step.Step {
	joined := own.Kubelet.Joined()
	joined.Undo = func(ctx context.Context) error {
		err := own.Object.Depart(step.WithLimit(ctx, step.CheckLimit(ctx)))
		// A host without this kubeconfig has no node, or an earlier turndown has asked.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			name := own.Object.Name
			step.Leave(ctx, fmt.Sprintf(
				"node %s is listed, and its certificates are valid, until `kube-bootstrap forget %[1]s` "+
					"on a control plane: %[2]v", name, err))
		}
		return nil
	}
	return joined
}

// RemoveDeparting removes the workers that asked to leave. Control planes leave by themselves.
func RemoveDeparting(ctx context.Context, own parts.Etcd, cluster parts.ClusterAPI) error {
	names, err := node.Names(ctx, kube.Kubeconfig(controlplane.AgentConf), node.Departs)
	if err != nil || len(names) == 0 {
		return err
	}
	controlPlanes, err := own.ControlPlaneNames(ctx)
	if err != nil {
		return err
	}
	workers := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(controlPlanes, name) })
	return host.Each(workers, func(name string) error { return removeHost(ctx, own.Client, cluster, name, false) })
}

// removeHost removes a worker's rights, and then its node.
func removeHost(
	ctx context.Context, own etcd.Client, cluster parts.ClusterAPI, name string, compromised bool,
) error {
	ban := func(ctx context.Context, client *clientv3.Client, name string) error {
		return banNode(ctx, cluster, client, name, compromised)
	}
	if err := own.Do(ctx, func(client *clientv3.Client) error {
		return removeRights(ctx, client, name, ban)
	}); err != nil {
		return err
	}
	return removeNode(ctx, cluster, name)
}

// removeRights bans the kubelet of a host before it removes the place in etcd, by which
// a second call knows the host: its node may be gone.
func removeRights(
	ctx context.Context, client *clientv3.Client, name string,
	ban func(context.Context, *clientv3.Client, string) error,
) error {
	if err := ban(ctx, client, name); err != nil {
		return err
	}
	return expel(ctx, client, name)
}

// Forget removes a dead host from the cluster: its etcd member and users, so
// that its certificates are useless, its flannel subnet, and its node. It
// must run on a control plane. A second call completes an interrupted one.
func Forget(ctx context.Context, own etcd.Member, cluster parts.ClusterAPI, name string) error {
	return forget(ctx, own, cluster, name, false, func(ctx context.Context) (known bool, err error) {
		ip, err := cluster.Node(name).Dead(ctx)
		return ip != "", err
	})
}

// ForgetCompromised removes a worker that somebody else controls, whether it is alive or
// not: the worker itself writes the address at which it would be asked. It also deletes
// the worker's pods, whose tokens would open the API until they are gone.
func ForgetCompromised(ctx context.Context, own etcd.Member, cluster parts.ClusterAPI, name string) error {
	one := cluster.Node(name)
	if err := forget(ctx, own, cluster, name, true, one.Exists); err != nil {
		return err
	}
	return one.DropPods(ctx)
}

// forget removes a host that known, its place in etcd, or the members of etcd show to be
// a host of the cluster.
func forget(
	ctx context.Context, own etcd.Member, cluster parts.ClusterAPI, name string, compromised bool,
	known func(context.Context) (bool, error),
) error {
	ip, err := own.Forget(ctx, name)
	found := ip != ""
	if !found && err == nil {
		found, err = known(ctx)
	}
	if !found && err == nil {
		err = own.Client.Do(ctx, func(client *clientv3.Client) error { return hasPlace(ctx, client, name) })
	}
	if err != nil {
		return err
	}
	return removeHost(ctx, own.Client, cluster, name, compromised)
}

// hasPlace returns a problem unless a host has an etcd user or a subnet, which it gets when
// it begins to join [node-unknown].
func hasPlace(ctx context.Context, client *clientv3.Client, name string) error {
	admitted, err := etcd.Admitted(ctx, client, name)
	if err != nil || admitted {
		return err
	}
	reserved, err := flannel.Reserved(ctx, client, name)
	if err != nil || reserved.IsValid() {
		return err
	}
	return &step.Problem{
		Name: "node-unknown", Text: "the cluster has no host " + name,
		Remedy: "use a name that `kubectl get nodes` lists",
	}
}

// removeNode deletes the node. It gives up after CheckLimit, because the host
// can leave without this.
func removeNode(ctx context.Context, cluster parts.ClusterAPI, name string) error {
	return step.Until(step.WithLimit(ctx, step.CheckLimit(ctx)), cluster.Node(name).Remove, nil)
}

// banNode makes the API servers refuse the certificates of a removed worker's
// kubelet. It first deletes its requests, so that only a certificate that is
// later requested with a token is accepted again.
func banNode(
	ctx context.Context, cluster parts.ClusterAPI, client *clientv3.Client, name string, compromised bool,
) error {
	if err := join.DeleteNodeRequests(ctx, cluster.Node(name).API, name); err != nil {
		return err
	}
	return noteRemoved(ctx, client, name, compromised)
}

// noteRemoved records that a host was removed. The record of a compromised host stays one.
func noteRemoved(ctx context.Context, client *clientv3.Client, name string, compromised bool) error {
	before, err := etcd.ReadRemoved(ctx, client, name)
	if err != nil {
		return err
	}
	return etcd.NoteRemoved(ctx, client, etcd.Removed{
		Host: name, Until: time.Now().Add(pki.LeafLife),
		Compromised: compromised || before != nil && before.Compromised,
	})
}

// RefuseRemoved configures this host's API server to refuse removed nodes.
func RefuseRemoved(ctx context.Context, own etcd.Client) error {
	return own.Do(ctx, func(client *clientv3.Client) error {
		removed, err := etcd.ListRemoved(ctx, client, time.Now())
		if err != nil {
			return err
		}
		// If the API server does not answer, the removed nodes in etcd are still
		// refused.
		acceptErr := acceptReturned(ctx, client, removed)
		var nodes []controlplane.RemovedNode
		for _, r := range removed {
			nodes = append(nodes, controlplane.RemovedNode{Name: r.Host, Accepted: r.Accepted})
		}
		return errors.Join(acceptErr, controlplane.RefuseRemoved(own.Credentials.Files, nodes))
	})
}

// acceptReturned accepts the certificates of workers that joined again:
// certificates that were requested with a token or with an accepted
// certificate.
func acceptReturned(ctx context.Context, client *clientv3.Client, removed []etcd.Removed) error {
	if len(removed) == 0 {
		return nil
	}
	issued, err := join.NodeCertificates(ctx, kube.Kubeconfig(controlplane.AgentConf))
	if err != nil {
		return err
	}
	for i, r := range removed {
		wanted := accepted(r.Host, r.Accepted, issued)
		if slices.Equal(wanted, r.Accepted) {
			continue
		}
		if err := r.Accept(ctx, client, wanted); err != nil {
			return err
		}
		removed[i].Accepted = wanted
	}
	return nil
}

// accepted returns the accepted certificates of a worker that joined again, from those
// accepted now and those issued, the oldest first. A node that requested a certificate
// with another one of its own has no older ones in use. The result depends on the last
// requests only, so a node cannot make it grow.
func accepted(host string, now []string, issued []join.NodeCertificate) []string {
	all := slices.Clone(now)
	for _, c := range issued {
		if c.Node != host || slices.Contains(all, c.SHA256) || c.By != "" && !slices.Contains(all, c.By) {
			continue
		}
		if c.By != "" {
			all = []string{c.By}
		}
		all = append(all, c.SHA256)
		all = all[max(0, len(all)-controlplane.MostAccepted):]
	}
	return all
}
