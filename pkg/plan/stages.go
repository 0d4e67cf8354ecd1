package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// podNetwork is the stage in which a host gets its subnet from flannel and moves
// docker0 onto it, unless another CNI plugin provides the pod network. The step
// beside runs while flanneld starts.
func podNetwork(h *local.Host, role string, beside step.Step) step.Plan {
	flanneld := parts.Flanneld(h)
	return step.Plan{
		{beside, parts.OnDocker0(h, flanneld.Start()), parts.OnOtherCNI(h, containerd.LeaveCNI(h.Files, parts.Containerd(h), local.Prefix(h.Config.FlannelNetwork)))},
		{parts.OnDocker0(h, parts.Bridge(h).Move()), parts.OnDocker0(h, parts.CNI(h)), parts.OnDocker0(h, flanneld.Overlay())},
		{parts.OnDocker0(h, parts.Overlay(h).Open()), parts.OnDocker0(h, parts.HostFilter(h, role).Step()), parts.KeepSysctls(h), bootUnit(h)},
	}
}

// bootUnit is the step that restores the network at boot. systemd starts and stops
// nothing while it reads the unit, so the step does not run beside the restart of
// Docker.
func bootUnit(h *local.Host) step.Step {
	return maindocker.BootUnit(h.Files, h.Units, local.Binary, h.Timeout())
}

// beforeKubelet is the stage that prepares the start of the kubelet.
func beforeKubelet(h *local.Host, role string) step.Plan {
	return step.Plan{
		{parts.Kubelet(h, role).Configure(), parts.ServiceRoute(h).Step()},
		{parts.Pods(h).Claim()},
	}
}

// keepNetwork returns the steps that keep what pods and kube-proxy need on a host.
func keepNetwork(h *local.Host) []step.Step {
	return []step.Step{parts.OnDocker0(h, parts.KeepPods(h)), parts.Proxy(h).KeepServices(), parts.OnDocker0(h, containerd.KeepHostPorts(h.Files))}
}

// end is the last stage: the settings of the run are in force from here on.
func end(h *local.Host, role string) step.Plan {
	return step.Plan{{accept(h, role)}, parts.DropReplaced(h)}
}

// ifJoining returns s on a joining control plane, and otherwise an empty step, see
// step.Plan.Compact.
func ifJoining(h *local.Host, s step.Step) step.Step {
	if h.Config.Join {
		return s
	}
	return step.Step{}
}

// ifNotJoining returns s on the first control plane, and otherwise an empty step.
func ifNotJoining(h *local.Host, s step.Step) step.Step {
	if h.Config.Join {
		return step.Step{}
	}
	return s
}

// ifNetwork returns s unless the user installs a CNI plugin later, because s
// waits for the pod network.
func ifNetwork(h *local.Host, s step.Step) step.Step {
	if h.Config.CNIPlugin == config.CNINone {
		return step.Step{}
	}
	return s
}
