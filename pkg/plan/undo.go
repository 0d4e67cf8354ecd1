package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// undoOrder returns p with the order of its Undo. The slowest one restarts Docker.
// It begins once the kubelet has stopped, beside the removal of the pods. The
// kubelet's files follow both, because tables of the firewall are removed with
// them if they are empty, and Docker fills tables while it starts. The start of
// Docker may also run the boot unit, which restores the mount of these files and
// the route to Services. flanneld returns its lease through the agent's balancer:
//
//	kubelet ──▶ overlay ──▶ docker0, boot unit ──┬──▶ flanneld ──▶ agent, etcd ────┬──▶ bootstrap Docker, containerd
//	   └──────▶ pods ────────────────────────────┴──▶ the kubelet's files, route ──┘
func undoOrder(h *local.Host, role string, p step.Plan) step.Plan {
	kubelet, pods := parts.Kubelet(h, role).Start(), parts.Pods(h).Claim()
	overlay, docker0, flanneld := parts.Overlay(h).Open(), parts.Bridge(h).Move(), parts.Flanneld(h).Start()
	boot := maindocker.BootUnit(h.Files, h.Units, local.Binary, h.Timeout())
	return p.
		UndoneAfter(overlay, kubelet).
		UndoneAfter(docker0, kubelet, overlay).
		UndoneAfter(boot, kubelet, overlay).
		UndoneAfter(parts.Kubelet(h, role).Configure(), pods, docker0).
		UndoneAfter(parts.ServiceRoute(h).Step(), pods, docker0).
		UndoneAfter(flanneld, pods, docker0, boot).
		UndoneAfter(startAgent(h, role), pods, flanneld).
		UndoneAfter(parts.StartEtcd(h), pods, flanneld)
}
