package plan

import (
	"context"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Master returns the plan of a control plane, the first one of its cluster or
// a joining one: a second Docker for etcd and flanneld, the main Docker in
// flannel's subnet, and a kubelet that runs the control plane as static pods.
func Master(h *local.Host) step.Plan {
	return undoOrder(h, local.Master, slices.Concat(
		masterEngines(h),
		masterEtcd(h),
		podNetwork(h, local.Master, earlyAPIServer(h)),
		beforeKubelet(h, local.Master),
		apiServer(h),
		cluster(h),
		end(h, local.Master),
	)).Compact().Within(h.Timeout())
}

// masterEngines is the stage that loads images and starts the bootstrap Docker and,
// on a new host, the kubelet.
func masterEngines(h *local.Host) step.Plan {
	bootstrap := parts.Bootstrap(h)
	main, pods := parts.Load(h)
	return slices.Concat(step.Plan{{remember(h, local.Master), preflight.Room(h)}}, h.Supply.Plan, step.Plan{
		{parts.FetchBundle(h, local.Master).If(h.Config.Join)},
		// Nothing restarts Docker here: some releases hang if firewalld reloads meanwhile
		// (https://github.com/moby/moby/issues/50619).
		{parts.OnDocker0(h, parts.Firewall(h, local.Master).Permit()), kubelet.RememberSysctls(h.Files)}, // before files that show that the kubelet has run
		{
			h.Join.Save().If(h.Config.Join), parts.MainDocker(h).Resume(),
			parts.RegistryFiles(h), parts.CRI(h).Enable(),
		},
		{parts.PKI(h).Certificates(), bootstrap.Containerd()},
		// All loads together decompress the bundle once. The other control planes enable
		// leader election while this host starts.
		{
			bootstrap.Start(), parts.LoadBootstrap(h, "etcd"), parts.LoadBootstrap(h, "flannel"),
			main, pods, earlyKubelet(h, local.Master).After(main, pods), h.Source().InstallCNIPlugins(),
			parts.EtcdMember(h).Announce().If(h.Config.Join).After(main, pods),
		},
	})
}

// masterEtcd is the stage that starts etcd, in which each host then has its place.
func masterEtcd(h *local.Host) step.Plan {
	etcd := parts.Etcd(h)
	return step.Plan{
		{parts.StartEtcd(h), startAgent(h, local.Master)},
		{parts.EtcdServer(h).Database().Room()},
		{etcd.EnableAuth(), parts.OnDocker0(h, parts.Network(h).Publish(etcd)), parts.StaticPods(h).Early()},
		{membership.Admitted(h)},
	}
}

// apiServer is the stage that starts the kubelet and waits for the API server.
func apiServer(h *local.Host) step.Plan {
	return step.Plan{
		{
			parts.StaticPod(h, "kube-controller-manager").Revive(), parts.StaticPod(h, "kube-scheduler").Revive(),
			parts.Kubelet(h, local.Master).Start(), reviveAPIServer(h),
		},
		{apiServerReady(h), parts.StaticPods(h).LateInNewCluster(parts.PKI(h)).If(!h.Config.Join)},
		{controlplane.AwaitElection(h.Files).If(h.Config.Join), controlplane.GrantAdmin(parts.PKI(h))},
	}
}

// cluster is the stage that applies the objects of the cluster.
func cluster(h *local.Host) step.Plan {
	pods, node := parts.StaticPods(h), parts.Node(h, controlplane.AdminConf)
	return step.Plan{
		{applyNetwork(h), pods.Late().If(h.Config.Join)},
		append(keepNetwork(h),
			parts.EtcdMember(h).List(), parts.Publish(h), parts.ApplyAddons(h),
			parts.Watched(node.Mark(marks(h, local.Master))), parts.Watched(membership.ServingCertificate(h))),
		pods.Healthy(func(component string) func(context.Context) error { return parts.StaticPod(h, component).Watch }),
		append(parts.FurtherAddons(h), madeDirs(h), kubelet.InstallKubectl(h.Files, local.Binary),
			parts.Watched(node.WaitReady().If(networkInstalled(h)))),
		// A stage of its own: while the node is not Ready, the state of CoreDNS may be older
		// than an outage.
		{parts.Addons(h).WaitDNS().If(networkInstalled(h))},
		{h.Join.Spend(kube.Kubeconfig(controlplane.AdminConf)).If(h.Config.Join)},
	}
}
