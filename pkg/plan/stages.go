package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The usual order of Undo, all later stages first, is slow. The steps that the drawing names
// therefore state what they are undone after: here, in Master and in Worker. The slowest Undo restarts
// Docker. It begins once the kubelet has stopped, and runs beside the removal of the pods and,
// on a worker, of the node. The removal of the pods would delay the short steps before
// the restart. The files of the kubelet are removed after these. Their Undo also removes
// the empty tables of the firewall: Docker writes into tables while it starts, and
// flanneld and other CNI plugins have chains in them. The start of Docker would also
// start the boot unit, which mounts the directory of these files again and restores the
// route to Services, and then stay active. flanneld returns its lease through the
// agent's balancer, so the agent stops after flanneld:
//
//	overlay, boot unit ──┬──▶ docker0 ──┬──▶ flanneld ──┬──▶ agent, etcd ──────────┬──▶ bootstrap Docker, containerd
//	kubelet ──┬──────────┴──▶ pods ──┬──┤               └──▶ the kubelet's files ──┤
//	          │                      ├──┼──▶ route to Services ────────────────────┤
//	          │                      └──┼──▶ CNI plugins, filter of hosts ──────────┘
//	          └──▶ node ────────────────┘

// podNetwork is the stage in which a host gets its subnet from flannel and moves
// docker0 onto it, unless another CNI plugin provides the pod network. The steps
// beside run while flanneld starts.
func podNetwork(n parts.PodNetwork, beside ...step.Step) step.Plan {
	return step.Plan{
		append(beside,
			n.OnDocker0(n.Flanneld.Start().UndoAfter(containerd.PodsID, kubelet.JoinID, maindocker.Docker0ID)),
			n.OtherCNI().UndoAfter(containerd.PodsID, kubelet.JoinID)),
		{
			n.OnDocker0(n.Bridge.Move().UndoAfter(kubelet.StartID, maindocker.OverlayID, maindocker.BootUnitID)),
			n.CNI(), n.OnDocker0(n.Flanneld.Overlay()),
		},
	}
}

// openNetwork returns the steps that complete the pod network. They run while the host waits for the API
// server or for its certificate.
func openNetwork(n parts.PodNetwork) []step.Step {
	return []step.Step{
		n.OnDocker0(n.Overlay.Open().UndoAfter(host.CreatedDirsID)),
		n.OnDocker0(n.Filter.Step().UndoAfter(containerd.PodsID)),
		n.KeepSysctls(), n.BootUnit().UndoAfter(host.CreatedDirsID),
	}
}

func beforeKubelet(n parts.NodeComponents) step.Plan {
	configure := n.Kubelet.Configure().UndoAfter(
		containerd.PodsID, kubelet.JoinID, maindocker.Docker0ID, flannel.StartID, containerd.LeaveCNIID)
	return step.Plan{
		{configure, n.ServiceRoute.Step().UndoAfter(containerd.PodsID, maindocker.Docker0ID)},
		{n.Pods.Claim().UndoAfter(kubelet.StartID, maindocker.OverlayID, maindocker.BootUnitID)},
	}
}

// loadBootstrap is the step that loads one image into the bootstrap Docker, once it runs,
// so that its container need not wait for the other images.
func loadBootstrap(images parts.Images, name string) step.Step {
	return images.LoadBootstrap(name).Needing(bootstrapdocker.StartID)
}

func cniPlugins(images parts.Images) step.Step {
	return images.Source.InstallCNIPlugins().UndoAfter(containerd.PodsID)
}

// startAgent needs a client certificate for etcd.
func startAgent(s agent.Installation) step.Step {
	return s.Start().UndoAfter(containerd.PodsID, kubelet.JoinID, flannel.StartID)
}

// keepNetwork returns the steps that keep what pods and kube-proxy need on a host.
func keepNetwork(n parts.PodNetwork, proxy containerd.Proxy) []step.Step {
	return []step.Step{n.KeepPods(), proxy.KeepServices(), n.KeepHostPorts()}
}

// end contains the last stages: the settings of the run are in force from here on. Between the two steps of an
// upgrade, the host keeps the images of both versions.
func end(h *local.Host, accept step.Step, images parts.Images) step.Plan {
	if h.Upgrade.Begun() {
		return step.Plan{{accept}}
	}
	return step.Plan{{accept}, images.DropReplaced()}
}
