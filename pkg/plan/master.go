package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Master returns the plan of a control plane, the first one of its cluster or
// a joining one: a second Docker for etcd and flanneld, the main Docker in
// flannel's subnet, and a kubelet that runs the control plane as static pods.
func (h *Host) Master() step.Plan {
	etcd, network, bridge := h.etcd(), h.network(), h.bridge()
	control, kubelet, node := h.controlPlane(), h.kubelet(Master), h.node(controlplane.AdminConf)
	return step.Plan{
		{h.remember(Master), h.room()},
		append(h.saveHandover(), bridge.Resume(), kubelet.RememberSysctls(), h.registryFiles(), h.runtime().EnableCRI()),
		{control.Certificates(), h.bootstrap().Containerd()},
		append(h.announced(), h.bootstrap().Start(), h.loadMain(), h.loadContainerd(), h.source().InstallCNIPlugins()),
		{h.loadBootstrap("etcd")},
		{h.member(), h.startAgent(Master), h.loadBootstrap("flannel")},
		{etcd.Room()},
		{etcd.EnableAuth(), h.onDocker0(network.Publish(etcd)), control.StaticPods()},
		{h.admitted()},
		{h.onDocker0(h.flanneld().Start()), h.onOtherCNI(h.runtime().LeaveCNI(mustPrefix(h.Config.FlannelNetwork)))},
		{h.onDocker0(bridge.Move()), bridge.BootUnit(Binary, h.timeout()), h.onDocker0(h.cni()), h.onDocker0(h.flanneld().Overlay())},
		{h.onDocker0(bridge.Open()), h.onDocker0(h.hostFilter(Master).Step()), h.keepSysctls()},
		{kubelet.Configure(), kubelet.RouteServices(mustPrefix(h.Config.ServiceNetwork))},
		{h.runtime().Pods()},
		append(h.reviveLate(), kubelet.Start(), h.reviveAPIServer()),
		{h.apiServerReady()},
		append(h.sharing(), control.GrantAdmin()),
		{h.applyNetwork(), control.Late(), h.onDocker0(h.keepPods()), h.runtime().KeepServices(), h.onDocker0(h.runtime().KeepHostPorts())},
		{etcd.List(), h.publish(), h.applyAddons(), h.watched(node.Mark(h.marks(Master))), h.watched(h.servingCertificate())},
		control.Healthy(h.runtime().Watch),
		append(h.furtherAddons(), h.madeDirs(), kubelet.InstallKubectl(Binary), h.watched(h.ifNetwork(node.WaitReady())), h.ifNetwork(h.addons().WaitDNS())),
		h.spendToken(),
		{h.accept(Master)},
		h.dropReplaced(),
	}.Compact().Within(h.timeout())
}
