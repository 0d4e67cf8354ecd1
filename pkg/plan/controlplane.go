package plan

import (
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ControlPlane returns the plan of a control plane, the first one of its cluster or
// a joining one: a second Docker for etcd and flanneld, the main Docker in
// flannel's subnet, and a kubelet that runs the control plane as static pods.
func ControlPlane(h *local.Host) step.Plan {
	return controlPlane(h, parts.New(h, local.ControlPlane), nil)
}

// controlPlane is ControlPlane with further stages before etcd starts.
func controlPlane(h *local.Host, p parts.Parts, beforeEtcd step.Plan) step.Plan {
	return slices.Concat(
		step.Plan{{remember(h, local.ControlPlane), preflight.Room(h.Files), beginUpgrade(h)}}, h.Supply.Plan,
		controlPlaneEngines(p),
		beforeEtcd,
		controlPlaneEtcd(p.Etcd, p.Agent, p.Network, p.ControlPlane.StaticPods),
		podNetwork(p.Network, earlyAPIServer(p.Network, p.ControlPlane, p.Join)),
		beforeKubelet(p.Node),
		apiServer(p.Node.Kubelet, p.Network, p.ControlPlane, p.Etcd.Container, p.Join),
		cluster(p),
		end(h, accept(h, local.ControlPlane), p.Images),
	).Within(h.Timeout())
}

// controlPlaneEngines is the stage that loads images and starts the bootstrap Docker and,
// on a new host, the kubelet.
func controlPlaneEngines(p parts.Parts) step.Plan {
	main, pods := p.Images.Load()
	early := earlyKubelet(p.Network, p.Node, p.Join, p.ControlPlane.StaticPods.WriteAPIServer())
	save, cri := p.Join.Save().If(p.Join.Wanted), p.Node.CRI.Enable()
	return step.Plan{
		{p.Images.Fetch().If(p.Join.Wanted)},
		// Nothing restarts Docker here: some releases hang if firewalld reloads meanwhile
		// (https://github.com/moby/moby/issues/50619).
		// The sysctls come before files that show that the kubelet has run.
		{p.Network.OnDocker0(p.Network.Firewall.Permit()), kubelet.RememberSysctls(p.Docker.Files)},
		{
			save, p.Docker.Resume(), p.Images.RegistryFiles(), cri, installProgram(p.Docker.Files),
			p.ControlPlane.PKI.Certificates().Needing(save.ID), p.Bootstrap.Containerd().Needing(cri.ID),
		},
		// All loads together decompress the bundle once. The other control planes enable
		// leader election while this host starts.
		{
			p.Bootstrap.Start(), loadBootstrap(p.Images, "etcd"), loadBootstrap(p.Images, "flannel"), main, pods,
			cniPlugins(p.Images), p.Etcd.Member.Announce().Needing(main.ID, pods.ID).If(p.Join.Wanted),
			early.Needing(main.ID, pods.ID),
		},
	}
}

// controlPlaneEtcd is the stage that starts etcd, in which each host then has its place.
func controlPlaneEtcd(
	own parts.Etcd, agent agent.Installation, network parts.PodNetwork, pods controlplane.StaticPods,
) step.Plan {
	return step.Plan{
		{own.Start().UndoAfter(containerd.PodsID, flannel.StartID), startAgent(agent)},
		{own.Container.Database().Room()},
		{own.Client.EnableAuth(), network.OnDocker0(network.Flannel.Publish(own.Client)), pods.WriteAPIServer()},
		{membership.Admitted(own.Member, network)},
	}
}

// apiServer is the stage that starts the kubelet and waits for the API server.
func apiServer(
	own kubelet.Kubelet, network parts.PodNetwork, control parts.ControlPlane, server etcd.MemberContainer,
	join parts.Join,
) step.Plan {
	controllers := control.StaticPods.WriteControllersInNewCluster(control.PKI).If(!join.Wanted)
	if control.PKI.Sealed {
		// The cluster is not new. Its components would slow down the start of the API server.
		controllers = controllers.Needing(control.Ready().ID)
	}
	election := controlplane.AwaitElection(control.PKI.Files)
	return step.Plan{
		{
			control.StaticPod("kube-controller-manager").Revive(), control.StaticPod("kube-scheduler").Revive(),
			own.Start().UndoAfter(host.CreatedDirsID, controlplane.ControllersID, controlplane.ControllersInNewClusterID),
			control.ReviveAPIServer(server),
		},
		{own.Joined().UndoAfter(kubelet.StartID).If(false)}, // of a worker; steps of both roles name it
		append(openNetwork(network), control.Ready(), controllers),
		// A joined control plane may become the only one of its cluster.
		{election.If(join.Wanted && !control.StaticPods.Single), controlplane.GrantAdmin(control.PKI)},
	}
}

// cluster is the stage that applies the objects of the cluster.
func cluster(p parts.Parts) step.Plan {
	pods := p.ControlPlane.StaticPods
	return step.Plan{
		{p.Addons.Network(), pods.WriteControllers().If(p.Join.Wanted)},
		append(keepNetwork(p.Network, p.Node.Proxy),
			p.Etcd.Member.List(), p.ControlPlane.Publish(), p.Addons.Apply(),
			p.Node.Label(), parts.Watched(membership.ServingCertificate(p.Etcd, p.Network))),
		pods.Healthy(p.ControlPlane.Watch),
		append(p.Addons.Further(), madeDirs(p.Docker.Files), kubelet.InstallKubectl(p.Docker.Files, local.Binary),
			p.Node.WaitReady()),
		// A stage of its own: while the node is not Ready, the state of CoreDNS may be older
		// than an outage.
		{p.Node.IfNetwork(p.Addons.WaitDNS())},
		{p.Join.Spend(kube.Kubeconfig(controlplane.AdminConf)).If(p.Join.Wanted)},
	}
}
