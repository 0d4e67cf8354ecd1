package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// undoOrder returns p with the order of its Undo. The slowest Undo restarts Docker.
// It begins once the kubelet has stopped, and runs beside the removal of the pods and,
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
func undoOrder(h *local.Host, role string, p step.Plan) step.Plan {
	kubelet, pods, joined := parts.Kubelet(h, role).Start(), parts.Pods(h).Claim(), membership.Joined(h)
	overlay, docker0, flanneld := parts.Overlay(h).Open(), parts.Bridge(h).Move(), parts.Flanneld(h).Start()
	boot, otherCNI := bootUnit(h), parts.OtherCNI(h)
	return p.
		UndoneAfter(kubelet, madeDirs(h), parts.StaticPods(h).Late()).
		UndoneAfter(joined, kubelet).
		UndoneAfter(pods, kubelet, overlay, boot).
		UndoneAfter(overlay, madeDirs(h)).
		UndoneAfter(boot, madeDirs(h)).
		UndoneAfter(docker0, kubelet, overlay, boot).
		UndoneAfter(parts.Kubelet(h, role).Configure(), pods, joined, docker0, flanneld, otherCNI).
		UndoneAfter(otherCNI, pods, joined).
		UndoneAfter(parts.ServiceRoute(h).Step(), pods, docker0).
		UndoneAfter(h.Source().InstallCNIPlugins(), pods).
		UndoneAfter(parts.HostFilter(h, role).Step(), pods).
		UndoneAfter(flanneld, pods, joined, docker0).
		UndoneAfter(startAgent(h, role), pods, joined, flanneld).
		UndoneAfter(parts.StartEtcd(h), pods, flanneld)
}
