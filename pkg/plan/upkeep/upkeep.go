// Package upkeep contains the agent of a host: the events that it watches, and
// the steps that it applies after each.
package upkeep

import (
	"context"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Reconcilers returns the steps that the agent applies by itself, each with the
// events after which it may be necessary. They change no setting. The agent
// restarts Docker for two reasons only: docker0 is in another subnet than the
// lease, or Docker's firewall chains are gone.
//
//	overlay      etcd ──▶ flanneld ──▶ routes
//	main Docker  CNI config ──▶ docker0 ──▶ Docker's chains ──▶ kubelet ──▶ pods
//	other groups are independent, or wait for one of these
func Reconcilers(h *local.Host, past *outages) agent.Groups {
	p, controlPlane := parts.InForce(h), h.Saved.Role == local.ControlPlane
	n := p.Network
	return agent.Groups{
		"balancer": {{Step: p.Balancer.Known(), On: agent.Tick}},
		"overlay": {
			{Step: p.Etcd.StartAsMember().If(controlPlane), On: agent.BootstrapDocker},
			{Step: n.OnDocker0(n.Flanneld.Start()), On: agent.BootstrapDocker | agent.Link | agent.Files},
			{
				Step: n.OnDocker0(n.Flanneld.Overlay()),
				On:   agent.BootstrapDocker | agent.Link | agent.Route | agent.Lease,
			},
			// renewDue replaces the containers of this group, so it belongs to it.
			{Step: renewal.RenewDue(h, p.ControlPlane.PKI, p.Join, n), On: agent.Files, Limit: renewal.Limit},
			{Step: renewal.FollowRotation(h), On: agent.Cluster, Limit: renewal.Limit},
		},
		"main Docker": {
			{Step: n.CNI(), On: agent.Link | agent.Tick},
			{Step: n.OnDocker0(maindocker.RestoreSettings(h.Files, n.Bridge.Lease)), On: agent.MainDocker | agent.Files},
			{
				Step: n.OnDocker0(n.Bridge.Follow()),
				On:   agent.MainDocker | agent.BootstrapDocker | agent.Link | agent.Files,
			},
			{Step: n.OnDocker0(n.Overlay.Open()), On: agent.MainDocker | agent.Link | agent.Firewall},
			{Step: p.Node.Kubelet.Start(), On: agent.MainDocker},
			{Step: parts.RunningKubelet().RestartAfter(past.end), On: agent.API},
			{Step: p.Node.Proxy.RestartAfter(past.end), On: agent.API},
			{Step: n.KeepPods(), On: agent.MainDocker | agent.Link},
		},
		"hosts": {
			{Step: n.OnDocker0(p.Etcd.Member.List().If(controlPlane)), On: agent.Link},
			{Step: n.OnDocker0(n.Filter.Step()), On: agent.Firewall | agent.Lease | agent.Cluster},
		},
		"Docker":     {{Step: preflight.WatchDocker(p.Docker, n.Reserved()), On: agent.Tick}},
		"firewall":   {{Step: n.OnDocker0(n.Firewall.Permit()), On: agent.Firewall}},
		"kernel":     {{Step: n.KeepSysctls(), On: agent.Link | agent.Forwarding | agent.Tick}},
		"Services":   {{Step: p.Node.Proxy.FollowServices(), On: agent.Firewall}},
		"host ports": {{Step: n.KeepHostPorts(), On: agent.Firewall}},
		"images":     loadedImages(h),
		"cluster":    ownShare(p.Etcd.Member, p.ControlPlane, p.Addons, controlPlane),
	}.Within(h.Timeout()).Compact()
}

// ownShare returns the duties of a control plane; a worker has none.
func ownShare(own etcd.Member, control parts.ControlPlane, addons parts.Addons, wanted bool) (reconcilers []agent.Reconciler) {
	if !wanted {
		return nil
	}
	for _, s := range shared(own, control, addons) {
		reconcilers = append(reconcilers, agent.Reconciler{Step: s, On: agent.Cluster})
	}
	return reconcilers
}

// loadedImages restores deleted images and CNI plugins.
func loadedImages(h *local.Host) []agent.Reconciler {
	const limit = 10 * time.Minute // includes a slow registry
	role := h.Saved.Role
	images := parts.New(h.WithImages(h.ImagesOf(role)), role).Images
	main, pods := images.Load()
	joined := role == local.Worker || h.Config.Join
	return []agent.Reconciler{
		{
			Step: images.Fetch().If(joined), Limit: limit,
			On: agent.BootstrapDocker | agent.MainDocker | agent.Containerd | agent.Files,
		},
		{Step: images.LoadBootstrap("flannel"), On: agent.BootstrapDocker, Limit: limit},
		{Step: main, On: agent.MainDocker, Limit: limit},
		{Step: pods, On: agent.Containerd, Limit: limit},
		{Step: images.Source.InstallCNIPlugins(), On: agent.Files, Limit: limit},
		{Step: images.LoadBootstrap("etcd").If(role == local.ControlPlane), On: agent.BootstrapDocker, Limit: limit},
	}
}

// shared returns the steps that adapt a control plane to the number of
// control planes: leader election is on if there are several, the API server then
// uses the etcd of the others if its own is down, and the addons use no single API
// server. They also move a CoreDNS pod to a second node. They restore manifests that an
// interrupted exchange has removed, but not before the host has joined, nor while a
// renewal exchanges them.
func shared(own etcd.Member, control parts.ControlPlane, addons parts.Addons) []step.Step {
	pods, files := control.StaticPods, own.Data.Files
	last := []step.Step{addons.Spread(), useOtherEtcd(own, control)}
	missing := controlplane.ControllersMissing(files)
	others := !local.Complete(files) || files.Exists(controlplane.RenewingFile) // write them
	switch {
	case missing && others:
		return nil
	case !missing && controlplane.Electing(files) != pods.Single:
		return last
	}
	return slices.Concat([]step.Step{pods.WriteControllers(), addons.Apply()}, addons.Contained(), last)
}

// useOtherEtcd restarts the first API server of several control planes with the second
// endpoint of etcd, while another API server serves. It does not repair other differences:
// a rotation restarts the API servers one after the other.
func useOtherEtcd(own etcd.Member, control parts.ControlPlane) step.Step {
	const name = "let the API server use another etcd while that of this host is down"
	files, endpoints := own.Data.Files, control.StaticPods.EtcdEndpoints
	return step.When("use-other-etcd", name, name, func(context.Context) (bool, error) {
		return len(endpoints) > 1 && !controlplane.UsesEtcd(files, endpoints[1]), nil
	}, func(ctx context.Context) error {
		// The balancer of this host notices a new API server a moment after it is ready.
		another := func(context.Context) error { return parts.AnotherServes(files, own.Client.IP) }
		if err := step.Until(step.WithLimit(ctx, step.CheckLimit(ctx)), another, nil); err != nil {
			return err
		}
		if err := control.StaticPods.WriteAPIServer().Apply(ctx); err != nil {
			return err
		}
		return step.Until(ctx, control.API.Answers, nil)
	})
}

// ReconcileCluster applies the steps that a control plane needs after a change of the
// nodes. Before them, it waits for the API server, because the agent may be
// restarting it. After them, it waits for the controller manager and the
// scheduler, which restart if they lose their leases meanwhile.
func ReconcileCluster(ctx context.Context, own etcd.Member, control parts.ControlPlane, addons parts.Addons) error {
	return (&step.Runner{}).Do(ctx, clusterPlan(own, control, addons).Within(step.Limit(ctx)))
}

func clusterPlan(own etcd.Member, control parts.ControlPlane, addons parts.Addons) step.Plan {
	return slices.Concat(
		step.Plan{{step.Wait("wait-for-apiserver", "wait for the API server", control.API.Answers, nil)}},
		step.InOrder(shared(own, control, addons)...),
		step.Plan{control.StaticPods.Healthy(control.Watch)},
	)
}
