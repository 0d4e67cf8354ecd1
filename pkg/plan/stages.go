package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// podNetwork is the stage in which a host gets its subnet from flannel and moves
// docker0 onto it, unless another CNI plugin provides the pod network. The step
// beside runs while flanneld starts.
func podNetwork(h *local.Host, role string, beside step.Step) step.Plan {
	flanneld, bridge, runtime := parts.Flanneld(h), parts.Bridge(h), parts.Runtime(h)
	return step.Plan{
		{beside, parts.OnDocker0(h, flanneld.Start()), parts.OnOtherCNI(h, runtime.LeaveCNI(local.Prefix(h.Config.FlannelNetwork)))},
		{
			parts.OnDocker0(h, bridge.Move()), bridge.BootUnit(local.Binary, h.Timeout()),
			parts.OnDocker0(h, parts.CNI(h)), parts.OnDocker0(h, flanneld.Overlay()),
		},
		{parts.OnDocker0(h, bridge.Open()), parts.OnDocker0(h, parts.HostFilter(h, role).Step()), parts.KeepSysctls(h)},
	}
}

// beforeKubelet is the stage that prepares the start of the kubelet.
func beforeKubelet(h *local.Host, role string) step.Plan {
	kubelet := parts.Kubelet(h, role)
	return step.Plan{
		{kubelet.Configure(), kubelet.RouteServices(local.Prefix(h.Config.ServiceNetwork))},
		{parts.Runtime(h).Pods()},
	}
}

// keepNetwork returns the steps that keep what pods and kube-proxy need on a host.
func keepNetwork(h *local.Host) []step.Step {
	runtime := parts.Runtime(h)
	return []step.Step{parts.OnDocker0(h, parts.KeepPods(h)), runtime.KeepServices(), parts.OnDocker0(h, runtime.KeepHostPorts())}
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

// ifNetwork returns s unless the user installs a CNI plugin later, because s
// waits for the pod network.
func ifNetwork(h *local.Host, s step.Step) step.Step {
	if h.Config.CNIPlugin == config.CNINone {
		return step.Step{}
	}
	return s
}
