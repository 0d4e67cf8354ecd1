package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Worker is what makes this host a node of a cluster: flannel with a
// certificate of its own, which a control plane signs, the main Docker on flannel's subnet,
// and a kubelet that gets its certificate by the token.
func (h *Host) Worker() step.Plan {
	h = h.withImages(h.imagesOf(Worker))
	bridge, agent, node := h.bridge(), h.kubelet(Worker), h.node(kubelet.Kubeconfig)
	return step.Plan{
		{h.remember(Worker), h.room()},
		{bridge.Resume(), agent.RememberSysctls(), h.join.Save(), h.flannelCertificate(), h.registryWay(), h.runtime().EnableCRI()},
		{h.bootstrap().Containerd()},
		{h.bootstrap().Start(), h.loadMain(), h.loadContainerd(), h.source().InstallCNIPlugins()},
		{h.loadBootstrap("flannel")},
		{h.startAgent(Worker)},
		{h.ifOurs(h.flanneld().Start()), h.ifOther(h.runtime().LeaveCNI(mustPrefix(h.Config.FlannelNetwork)))},
		{h.ifOurs(bridge.Move()), bridge.BootUnit(Binary, h.timeout()), h.ifOurs(h.cni()), h.ifOurs(h.flanneld().Overlay())},
		{h.ifOurs(bridge.Open()), h.keepSysctls()},
		{agent.Configure(), agent.RouteServices(mustPrefix(h.Config.ServiceNetwork))},
		{h.runtime().Pods()},
		{agent.Start()},
		{agent.Joined()},
		{h.ifOurs(h.keepPods()), h.runtime().KeepServices(), h.ifOurs(h.runtime().KeepHostPorts())},
		{h.madeDirs(), h.join.Forget(), h.watched(node.Mark(h.marks(Worker))), h.watched(h.ifNetwork(node.WaitReady()))},
		{h.accept(Worker)},
		h.dropReplaced(),
	}.Compact().Within(h.timeout())
}
