// Package upkeep contains the agent of a host: the events that it watches, and
// the steps that it applies after each.
package upkeep

import (
	"context"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Upkeep returns the steps that the agent applies by itself, each with the
// events after which it may be necessary. They change no setting. The agent
// restarts Docker for two reasons only: docker0 is in another subnet than the
// lease, or Docker's firewall chains are gone.
//
//	overlay      etcd ──▶ flanneld ──▶ routes
//	main Docker  CNI config ──▶ docker0 ──▶ Docker's chains ──▶ kubelet ──▶ pods
//	other groups are independent, or wait for one of these
func Upkeep(h *local.Host, past *outages) agent.Groups {
	role := h.Saved.Role
	controlPlane := role == local.Master
	return agent.Groups{
		"balancer": {{Step: parts.Balancer(h, role).Known(), On: agent.Tick}},
		"overlay": {
			{Step: parts.KeepEtcd(h).If(controlPlane), On: agent.BootstrapDocker},
			{Step: parts.OnDocker0(h, parts.Flanneld(h).Start()), On: agent.BootstrapDocker | agent.Link | agent.Files},
			{Step: parts.OnDocker0(h, parts.Flanneld(h).Overlay()), On: agent.BootstrapDocker | agent.Link | agent.Route | agent.Lease},
			// renewDue replaces the containers of this group, so it belongs to it.
			{Step: renewal.RenewDue(h), On: agent.Files, Limit: renewal.Limit},
			{Step: renewal.FollowRotation(h), On: agent.Cluster, Limit: renewal.Limit},
		},
		"main Docker": {
			{Step: parts.OnDocker0(h, parts.CNI(h)), On: agent.Link | agent.Tick},
			{Step: parts.OnDocker0(h, maindocker.KeepSettings(h.Files, parts.Bridge(h).Lease)), On: agent.MainDocker | agent.Files},
			{Step: parts.OnDocker0(h, parts.Bridge(h).Follow()), On: agent.MainDocker | agent.BootstrapDocker | agent.Link | agent.Files},
			{Step: parts.OnDocker0(h, parts.Overlay(h).Open()), On: agent.MainDocker | agent.Link | agent.Firewall},
			{Step: parts.Kubelet(h, role).Start(), On: agent.MainDocker},
			{Step: parts.RunningKubelet().RestartAfter(past.end), On: agent.API},
			{Step: parts.Proxy(h).RestartAfter(past.end), On: agent.API},
			{Step: parts.OnDocker0(h, parts.KeepPods(h)), On: agent.MainDocker | agent.Link},
		},
		"hosts": {
			{Step: parts.OnDocker0(h, parts.EtcdMember(h).List().If(controlPlane)), On: agent.Link},
			{Step: parts.OnDocker0(h, parts.HostFilter(h, role).Step()), On: agent.Firewall | agent.Lease | agent.Cluster},
		},
		"Docker":     {{Step: preflight.WatchDocker(h), On: agent.Tick}},
		"firewall":   {{Step: parts.OnDocker0(h, parts.Firewall(h, role).Permit()), On: agent.Firewall}},
		"kernel":     {{Step: parts.KeepSysctls(h), On: agent.Link | agent.Forwarding | agent.Tick}},
		"Services":   {{Step: parts.Proxy(h).FollowServices(), On: agent.Firewall}},
		"host ports": {{Step: parts.OnDocker0(h, containerd.KeepHostPorts(h.Files)), On: agent.Firewall}},
		"images":     loadedImages(h, role),
		"cluster":    ownShare(h),
	}.Within(h.Timeout()).Compact()
}

func ownShare(h *local.Host) (duties []agent.Duty) {
	for _, s := range shared(h) {
		duties = append(duties, agent.Duty{Step: s, On: agent.Cluster})
	}
	return duties
}

// loadedImages restores deleted images and CNI plugins.
func loadedImages(h *local.Host, role string) []agent.Duty {
	const limit = 10 * time.Minute // includes a slow registry
	h = h.WithImages(h.ImagesOf(role))
	main, pods := parts.Load(h)
	joined := role == local.Worker || h.Config.Join
	return []agent.Duty{
		{Step: parts.FetchBundle(h, role).If(joined), On: agent.BootstrapDocker | agent.MainDocker | agent.Containerd | agent.Files, Limit: limit},
		{Step: parts.LoadBootstrap(h, "flannel"), On: agent.BootstrapDocker, Limit: limit},
		{Step: main, On: agent.MainDocker, Limit: limit},
		{Step: pods, On: agent.Containerd, Limit: limit},
		{Step: h.Source().InstallCNIPlugins(), On: agent.Files, Limit: limit},
		{Step: parts.LoadBootstrap(h, "etcd").If(role == local.Master), On: agent.BootstrapDocker, Limit: limit},
	}
}

// shared returns the steps that adapt a control plane to the number of
// control planes: leader election is on if there are several, the API server then
// uses the etcd of the others if its own is down, and the addons use no single API
// server. They also move a CoreDNS pod to a second node. They restore manifests that an
// interrupted exchange has removed, but not before the host has joined, nor while a
// renewal exchanges them.
func shared(h *local.Host) []step.Step {
	pods := parts.StaticPods(h)
	last := []step.Step{parts.Addons(h).Spread(), useOtherEtcd(h)}
	missing := controlplane.LateMissing(h.Files)
	others := !local.Complete(h.Files) || h.Files.Exists(controlplane.RenewingFile) // write them
	switch {
	case h.Saved.Role != local.Master, missing && others:
		return nil
	case !missing && controlplane.Electing(h.Files) != pods.Single:
		return last
	}
	return slices.Concat([]step.Step{pods.Late(), parts.ApplyAddons(h)}, parts.ContainedAddons(h), last)
}

// useOtherEtcd restarts the first API server of several control planes with the second
// endpoint of etcd, while another API server serves. It does not repair other differences:
// a rotation restarts the API servers one after the other.
func useOtherEtcd(h *local.Host) step.Step {
	const name = "let the API server use another etcd while that of this host is down"
	return step.When("use-other-etcd", name, name, func(context.Context) (bool, error) {
		return len(parts.Others(h)) > 0 && !parts.UsesOtherEtcd(h), nil
	}, func(ctx context.Context) error {
		// The balancer of this host notices a new API server a moment after it is ready.
		another := func(context.Context) error { return parts.AnotherServes(h) }
		if err := step.Until(step.WithLimit(ctx, step.CheckLimit(ctx)), another, nil); err != nil {
			return err
		}
		if err := parts.StaticPods(h).Early().Apply(ctx); err != nil {
			return err
		}
		return step.Until(ctx, parts.API(h).Answers, nil)
	})
}

// Keep applies the steps that a control plane needs after a change of the
// nodes. Before them, it waits for the API server, because the agent may be
// restarting it. After them, it waits for the controller manager and the
// scheduler, which restart if they lose their leases meanwhile.
func Keep(ctx context.Context, h *local.Host) error {
	watch := func(component string) func(context.Context) error { return parts.StaticPod(h, component).Watch }
	return (&step.Runner{}).Do(ctx, slices.Concat(
		step.Plan{{step.Wait("wait-for-apiserver", "wait for the API server", parts.API(h).Answers, nil)}},
		step.InOrder(shared(h)...),
		step.Plan{parts.StaticPods(h).Healthy(watch)},
	).Within(h.Timeout()))
}
