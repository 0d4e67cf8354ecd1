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

// ControlPlanes are the control planes of the cluster as this host knows them.
func (h *Host) ControlPlanes() []balancer.ControlPlane {
	state, err := balancer.ReadState(h.Files)
	if err != nil {
		return nil
	}
	return state.ControlPlanes
}

// several reports whether there are more control planes than one, or will be. A
// controller manager that shares its work knows too, where the balancer's list
// was lost.
func (h *Host) several() bool {
	state, err := balancer.ReadState(h.Files)
	if err != nil || !state.Told {
		return h.Config.Join || controlplane.ControlPlane{Files: h.Files}.Electing()
	}
	return len(state.ControlPlanes) > 1
}

// others are the addresses of the other control planes, as far as they are
// known; of those that join, none.
func (h *Host) others() []string {
	state, err := balancer.ReadState(h.Files)
	all := state.Addresses()
	if (err != nil || !state.Told) && h.Config.Join {
		all = append(all, h.Config.MasterIP)
	}
	return slices.DeleteFunc(all, func(ip string) bool { return ip == h.Config.IPAddress })
}

// HoldsLastCopy reports whether this host has the only copy of its cluster's
// objects.
func (h *Host) HoldsLastCopy() bool {
	return h.saved.Role == Master && len(h.others()) == 0 && h.etcd().HasData()
}

// member is the etcd of this host: the first of a cluster, or one more.
func (h *Host) member() step.Step {
	if h.Config.Join {
		return h.etcd().Join()
	}
	return h.etcd().Start()
}

// announced is the row's part of a control plane that joins, done early: until
// it runs, the others have turned to sharing their work.
func (h *Host) announced() []step.Step {
	if !h.Config.Join {
		return nil
	}
	return []step.Step{h.etcd().Announce()}
}

// sharing is the same once the API server answers.
func (h *Host) sharing() []step.Step {
	if !h.Config.Join {
		return nil
	}
	return []step.Step{h.controlPlane().AwaitElection()}
}

// EtcdMembers are the members of the cluster's etcd; to be asked on a control
// plane.
func (h *Host) EtcdMembers(ctx context.Context) ([]etcd.MemberStatus, error) {
	return h.etcd().Status(h.limited(ctx))
}

// Share lays ready what a further control plane must be handed, and returns the
// key that opens it.
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

// shared are the steps that have this control plane do its work as befits how
// many there are: one that gets company begins to share it, one that is left
// alone ends that, and CoreDNS comes to a node that joins the first one.
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

// Keep applies what the agent of a control plane applies after a change of the
// nodes.
func (h *Host) Keep(ctx context.Context) error {
	var rows step.Plan
	for _, s := range h.shared() {
		rows = append(rows, []step.Step{s})
	}
	return (&step.Runner{}).Do(ctx, rows.Within(h.timeout()))
}

// Leave takes this host out of a cluster that goes on without it: out of etcd,
// and its node out of the API server's list. A worker has no right to do so and
// asks the control planes, and where there is no other control plane nobody has
// to know. What was not done but is no harm is returned as text; force makes that
// of everything.
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
	// A kubelet that is about to register, as after a boot, would bring its node back.
	if err := h.kubelet(Master).Start().Undo(ctx); err != nil {
		return left, err
	}
	if err := h.removeNode(ctx, name); err != nil {
		left = append(left, err.Error()+"; `kubectl delete node "+name+"` on another control plane does")
	}
	return left, nil
}

// depart has the control planes take this worker out. Its kubelet would bring
// the node back.
func (h *Host) depart(ctx context.Context) (left []string) {
	err := h.kubelet(Worker).Start().Undo(ctx)
	if err == nil {
		err = h.node(kubelet.Kubeconfig).Depart(step.WithLimit(ctx, step.CheckLimit(ctx)))
	}
	// Without its kubeconfig this host has no node, or an earlier turndown asked.
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		name := h.Config.HostName
		left = append(left, fmt.Sprintf("node %s is listed, and its certificates are valid, until `kube-bootstrap forget %s` on a control plane: %v", name, name, err))
	}
	return left
}
