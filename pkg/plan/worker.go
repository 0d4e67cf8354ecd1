package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Worker returns the plan of a worker: flannel with a certificate that a
// control plane signs, the main Docker in flannel's subnet, and a kubelet
// that gets its certificate by the token.
func (h *Host) Worker() step.Plan {
	h = h.withImages(h.imagesOf(Worker))
	bridge, kubelet, node := h.bridge(), h.kubelet(Worker), h.node(kubelet.Kubeconfig)
	return step.Plan{
		{h.remember(Worker), h.room()},
		{bridge.Resume(), kubelet.RememberSysctls(), h.join.Save(), h.flannelCertificate(), h.registryFiles(), h.runtime().EnableCRI()},
		{h.bootstrap().Containerd()},
		{h.bootstrap().Start(), h.loadMain(), h.loadContainerd(), h.source().InstallCNIPlugins()},
		{h.loadBootstrap("flannel")},
		{h.startAgent(Worker)},
		{h.onDocker0(h.flanneld().Start()), h.onOtherCNI(h.runtime().LeaveCNI(mustPrefix(h.Config.FlannelNetwork)))},
		{h.onDocker0(bridge.Move()), bridge.BootUnit(Binary, h.timeout()), h.onDocker0(h.cni()), h.onDocker0(h.flanneld().Overlay())},
		{h.onDocker0(bridge.Open()), h.onDocker0(h.hostFilter(Worker).Step()), h.keepSysctls()},
		{kubelet.Configure(), kubelet.RouteServices(mustPrefix(h.Config.ServiceNetwork))},
		{h.runtime().Pods()},
		{kubelet.Start()},
		{kubelet.Joined()},
		{h.onDocker0(h.keepPods()), h.runtime().KeepServices(), h.onDocker0(h.runtime().KeepHostPorts())},
		{h.madeDirs(), h.join.Forget(), h.watched(node.Mark(h.marks(Worker))), h.watched(h.ifNetwork(node.WaitReady()))},
		{h.accept(Worker)},
		h.dropReplaced(),
	}.Compact().Within(h.timeout())
}
