package plan

import (
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Worker returns the plan of a worker: flannel with a certificate that a
// control plane signs, the main Docker in flannel's subnet, and a kubelet
// that gets its certificate by the token.
func Worker(h *local.Host) step.Plan {
	h = h.WithImages(h.ImagesOf(local.Worker))
	return slices.Concat(
		workerEngines(h),
		podNetwork(h, local.Worker, earlyKubelet(h, local.Worker)...),
		beforeKubelet(h, local.Worker),
		joinCluster(h),
		end(h, local.Worker),
	).Within(h.Timeout())
}

// workerEngines is the stage that starts the bootstrap Docker and the agent, both of
// which flanneld needs, and loads images.
func workerEngines(h *local.Host) step.Plan {
	bootstrap := parts.Bootstrap(h)
	flannel := loadBootstrap(h, "flannel")
	main, pods := parts.Load(h)
	return slices.Concat(step.Plan{{remember(h, local.Worker), preflight.Room(h)}}, h.Supply.Plan, step.Plan{
		{parts.FetchBundle(h, local.Worker)},
		// Nothing restarts Docker here: some releases hang if firewalld reloads meanwhile
		// (https://github.com/moby/moby/issues/50619).
		{parts.OnDocker0(h, parts.Firewall(h, local.Worker).Permit()), kubelet.RememberSysctls(h.Files)}, // before files that show that the kubelet has run
		{
			parts.MainDocker(h).Resume(), h.Join.Save(),
			parts.FlannelCertificate(h), parts.RegistryFiles(h), parts.CRI(h).Enable(),
		},
		{bootstrap.Containerd()},
		{
			// The agent is in the stage of the bootstrap Docker, which therefore would not wait for
			// the Undo of the agent, and of all that ends before it.
			bootstrap.Start().UndoAfter(flannel.ID, agent.StartID), flannel,
			main, pods, cniPlugins(h), startAgent(h, local.Worker),
		},
	})
}

// joinCluster is the stage in which the kubelet joins and its node becomes Ready.
func joinCluster(h *local.Host) step.Plan {
	node := parts.Node(h, kubelet.Kubeconfig)
	return append(startKubelet(h, local.Worker),
		keepNetwork(h),
		[]step.Step{
			madeDirs(h), h.Join.Forget(), parts.Watched(node.Mark(marks(h, local.Worker))),
			parts.Watched(node.WaitReady().If(networkInstalled(h))),
		})
}
