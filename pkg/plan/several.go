package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func (h *Host) balancer(role string) balancer.Balancer {
	b := balancer.Balancer{Settings: h.balancing(), Files: h.Files, Seeds: []string{h.Config.IPAddress}}
	if role == Worker || h.Config.Join {
		b.Seeds = []string{h.Config.MasterIP}
	}
	return b
}

func (h *Host) balancing() balancer.Settings {
	return balancer.Settings{
		Own: h.Config.IPAddress, Port: h.Config.BalancerPort, APIPort: h.Config.APIServerPort,
		ClusterCA: join.ClusterCAFile, EtcdCA: join.EtcdCAFile, Cert: join.FlannelCertFile, Key: join.FlannelKeyFile,
	}
}

func (h *Host) balancedAPI() string { return "https://" + h.balancing().Address() }

func (h *Host) balancedEtcd() string { return "https://" + h.balancing().EtcdAddress() }

// ControlPlanes lists the control planes of the cluster, as the balancer of
// this host knows them.
func (h *Host) ControlPlanes() []balancer.ControlPlane {
	state, err := balancer.ReadState(h.Files)
	if err != nil {
		return nil
	}
	return state.ControlPlanes
}

// several reports whether the cluster has or will have several control
// planes. If the balancer's list was lost, it looks whether the controller
// manager uses leader election.
func (h *Host) several() bool {
	state, err := balancer.ReadState(h.Files)
	if err != nil || !state.Told {
		return h.Config.Join || controlplane.ControlPlane{Files: h.Files}.Electing()
	}
	return len(state.ControlPlanes) > 1
}

// others lists the known addresses of the other control planes, without those
// that are joining.
func (h *Host) others() []string {
	state, err := balancer.ReadState(h.Files)
	all := state.Addresses()
	if (err != nil || !state.Told) && h.Config.Join {
		all = append(all, h.Config.MasterIP)
	}
	return slices.DeleteFunc(all, func(ip string) bool { return ip == h.Config.IPAddress })
}

// HoldsLastCopy reports whether this host has the only etcd member of its
// cluster.
func (h *Host) HoldsLastCopy() bool {
	return h.saved.Role == Master && len(h.others()) == 0 && h.etcd().HasData()
}

// member is the step that starts the etcd of this host, as the first member
// or as a joining member.
func (h *Host) member() step.Step {
	if h.Config.Join {
		return h.etcd().Join()
	}
	return h.etcd().Start()
}

// announced returns the step that announces a joining control plane to the
// others. It runs early, so that they enable leader election meanwhile.
func (h *Host) announced() []step.Step {
	if !h.Config.Join {
		return nil
	}
	return []step.Step{h.etcd().Announce()}
}

// sharing returns the step in which a joining control plane waits for the
// leader election of the others.
func (h *Host) sharing() []step.Step {
	if !h.Config.Join {
		return nil
	}
	return []step.Step{h.controlPlane().AwaitElection()}
}

// EtcdMembers returns the status of the etcd members. It must run on a
// control plane.
func (h *Host) EtcdMembers(ctx context.Context) ([]etcd.MemberStatus, error) {
	return h.etcd().Status(h.limited(ctx))
}

// Share uploads the encrypted certificate authorities for a further control
// plane, and returns the key to decrypt them.
func (h *Host) Share(ctx context.Context) (join.CertificateKey, error) {
	ctx, cancel := step.Limited(h.limited(ctx))
	defer cancel()
	if err := h.NotRotating(ctx); err != nil {
		return join.CertificateKey{}, err
	}
	shared, err := h.controlPlane().Shared()
	if err != nil {
		return join.CertificateKey{}, err
	}
	client, err := kube.Kubeconfig(controlplane.AdminConf).Client()
	if err != nil {
		return join.CertificateKey{}, err
	}
	return join.Share(ctx, client, shared)
}

// shared returns the steps that adapt a control plane to the number of
// control planes: leader election is on if there are several. They also move
// a CoreDNS pod to a second node.
func (h *Host) shared() []step.Step {
	control := h.controlPlane()
	spread := []step.Step{h.addons().Spread()}
	switch {
	case h.saved.Role != Master || !h.Files.Exists(controlplane.ManifestDir+"/kube-controller-manager.yaml"):
		return nil
	case control.Electing() != control.Single:
		return spread
	}
	return append([]step.Step{control.StaticPods(), control.Late(), h.applyAddons()}, spread...)
}

// Keep applies the steps that a control plane needs after a change of the
// nodes.
func (h *Host) Keep(ctx context.Context) error {
	var rows step.Plan
	for _, s := range h.shared() {
		rows = append(rows, []step.Step{s})
	}
	return (&step.Runner{}).Do(ctx, rows.Within(h.timeout()))
}

// Leave removes this host from a cluster that continues without it: its etcd
// member and its node. A worker may not do this itself and asks the control
// planes. The only control plane has nobody to notify. left lists harmless
// failures; with force, it lists all failures.
func (h *Host) Leave(ctx context.Context, force bool) (left []string, err error) {
	ctx = h.limited(ctx)
	name := h.Config.HostName
	switch {
	case h.saved.Role == Worker:
		return h.depart(ctx), nil
	case h.saved.Role != Master || len(h.others()) == 0:
		return nil, nil
	}
	goodbye := func(ctx context.Context, client *clientv3.Client) error { return h.expel(ctx, client, name) }
	if err := h.etcd().Leave(ctx, goodbye); err != nil {
		if !force {
			return nil, err
		}
		left = append(left, err.Error())
	}
	// A kubelet that is about to register, as after a boot, would create the
	// node again.
	if err := h.kubelet(Master).Start().Undo(ctx); err != nil {
		return left, err
	}
	if err := h.removeNode(ctx, name); err != nil {
		left = append(left, err.Error()+"; `kubectl delete node "+name+"` on another control plane removes it")
	}
	return left, nil
}

// depart asks the control planes to remove this worker. It stops the kubelet,
// which would otherwise create the node again.
func (h *Host) depart(ctx context.Context) (left []string) {
	err := h.kubelet(Worker).Start().Undo(ctx)
	if err == nil {
		err = h.node(kubelet.Kubeconfig).Depart(step.WithLimit(ctx, step.CheckLimit(ctx)))
	}
	// A host without this kubeconfig has no node, or an earlier turndown has
	// asked.
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		name := h.Config.HostName
		left = append(left, fmt.Sprintf("node %s is listed, and its certificates are valid, until `kube-bootstrap forget %s` on a control plane: %v", name, name, err))
	}
	return left
}
