package plan

import (
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Worker returns the plan of a worker: flannel with a certificate that a
// control plane signs, the main Docker in flannel's subnet, and a kubelet
// that gets its certificate by the token.
func Worker(h *local.Host) step.Plan {
	p := parts.New(h.WithImages(h.ImagesOf(local.Worker)), local.Worker)
	return slices.Concat(
		step.Plan{{remember(h, local.Worker), preflight.Room(h.Files), beginUpgrade(h)}}, h.Supply.Plan,
		workerEngines(p),
		podNetwork(p.Network),
		beforeKubelet(p.Node),
		joinCluster(p.Node, p.Network, p.Join),
		end(h, accept(h, local.Worker), p.Images),
	).Within(h.Timeout())
}

// workerEngines is the stage that starts the bootstrap Docker and the agent, both of
// which flanneld needs, and loads images.
func workerEngines(p parts.Parts) step.Plan {
	flannel := loadBootstrap(p.Images, "flannel")
	main, pods := p.Images.Load()
	cri := p.Node.CRI.Enable()
	return step.Plan{
		{p.Images.Fetch()},
		// Nothing restarts Docker here: some releases hang if firewalld reloads meanwhile
		// (https://github.com/moby/moby/issues/50619).
		// The sysctls come before files that show that the kubelet has run.
		{p.Network.OnDocker0(p.Network.Firewall.Permit()), kubelet.RememberSysctls(p.Docker.Files)},
		{
			p.Docker.Resume(), p.Join.Save(), p.Join.FlannelCertificate(), p.Images.RegistryFiles(),
			cri, installProgram(p.Docker.Files), p.Bootstrap.Containerd().Needing(cri.ID),
		},
		{
			// The agent is in the stage of the bootstrap Docker, which therefore would not wait for
			// the Undo of the agent, and of all that ends before it.
			p.Bootstrap.Start().UndoAfter(flannel.ID, agent.StartID), flannel,
			main, pods, cniPlugins(p.Images), startAgent(p.Agent),
			// Without the agent, the kubelet would look for the API server again only after two seconds.
			// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubelet/certificate/bootstrap/bootstrap.go#L295-L302
			earlyKubelet(p.Network, p.Node, p.Join).Needing(main.ID, pods.ID, agent.StartID),
		},
	}
}

// joinCluster is the stage in which the kubelet joins and its node becomes Ready.
func joinCluster(node parts.NodeComponents, network parts.PodNetwork, join parts.Join) step.Plan {
	return step.Plan{
		{node.Kubelet.Start().UndoAfter(host.CreatedDirsID)},
		append(openNetwork(network), membership.Joined(node).UndoAfter(kubelet.StartID)),
		keepNetwork(network, node.Proxy),
		{madeDirs(node.Kubelet.Files), join.Forget(), node.Label(), node.WaitReady()},
	}
}
