package parts

import (
	"context"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// NodeComponents is what makes a host a node: the kubelet, the runtime of its pods and its object in the API.
type NodeComponents struct {
	Object       node.Node // as the kubelet, or the administrator on a control plane, reaches it
	Kubelet      kubelet.Kubelet
	CRI          containerd.CRI
	Pods         containerd.Pods
	Proxy        containerd.Proxy
	ServiceRoute kubelet.ServiceRoute

	labels    node.LabelsAndTaints
	installed bool // see WaitReady
}

func newNodeComponents(h *local.Host, role string, pki controlplane.PKI) NodeComponents {
	socket := h.CRISocket()
	pods := containerd.Pods{Files: h.Files, Socket: socket, Images: h.ImagesIn(image.Containerd)}
	n := NodeComponents{
		Object:  ObjectOf(h.Config.HostName, kubelet.Kubeconfig),
		Kubelet: newKubelet(h, kubeletIdentity(h, role, pki)),
		CRI: containerd.CRI{
			Pods: pods, Units: h.Units, SandboxImage: h.Image("pause"), KeepImages: h.Config.KeepImages,
			Registry: h.Registry != nil || len(h.Config.RegistryMirrors) > 0,
		},
		Pods: pods, Proxy: containerd.Proxy{Files: h.Files, Socket: socket},
		ServiceRoute: kubelet.ServiceRoute{
			Files: h.Files, Services: h.Config.ServiceNetwork.IPv4(), NodeIP: h.Config.IPAddress,
		},
		labels:    labelsAndTaints(role, h.Config.NodeLabels, h.Config.NodeTaints, !h.Config.NoDedicated),
		installed: h.Config.CNIPlugin != extension.CNINone,
	}
	if role == local.ControlPlane {
		n.Object.API = kube.Kubeconfig(controlplane.AdminConf)
	}
	return n
}

// Label is the step that labels and taints the node.
func (n NodeComponents) Label() step.Step { return Watched(n.Object.Label(n.labels)) }

// WaitReady is the step that waits until the node is Ready, unless the user installs the pod network
// later.
func (n NodeComponents) WaitReady() step.Step { return Watched(n.IfNetwork(n.Object.WaitReady())) }

// IfNetwork returns s, which is excluded unless the run installs the pod network.
func (n NodeComponents) IfNetwork(s step.Step) step.Step { return s.If(n.installed) }

// labelsAndTaints returns what the settings request for the node. Only pods of the cluster run on a dedicated
// control plane.
func labelsAndTaints(role string, labels []config.Label, taints []config.Taint, dedicated bool) node.LabelsAndTaints {
	m := node.LabelsAndTaints{Labels: labels, Taints: taints, ByKubelet: role == local.Worker}
	if role == local.ControlPlane {
		m.Labels = append(slices.Clone(m.Labels), config.Label{Key: node.ControlPlaneLabel})
	}
	if role == local.ControlPlane && dedicated {
		m.Taints = append(slices.Clone(m.Taints), config.Taint{
			Taint: corev1.Taint{Key: kubelet.ControlPlaneTaint, Effect: corev1.TaintEffectNoSchedule},
		})
	}
	return m
}

// ObjectOf returns the node of this name, as the owner of a kubeconfig reaches it.
func ObjectOf(name, kubeconfig string) node.Node {
	running := RunningKubelet()
	return node.Node{API: kube.Kubeconfig(kubeconfig), Name: name, Explain: running.Explain, Started: running.StartedAt}
}

// Watched ends a wait that depends on the kubelet early if that fails.
func Watched(s step.Step) step.Step { return s.Watched(RunningKubelet().Watch) }

func newKubelet(h *local.Host, identity kubelet.Identity) kubelet.Kubelet {
	return kubelet.Kubelet{
		Identity: identity, Docker: local.MainDocker, Image: h.Program("kubelet"),
		NodeIP: h.Config.IPAddress, RestartPolicy: h.Config.RestartPolicy, ExtraArgs: h.Config.ExtraArgs("kubelet"),
		Store: containerd.FindDirs(h.Files).Root,
		Config: kubelet.Configuration{
			ClusterDNS: h.Config.DNSServerIP, DNSDomain: h.Config.DNSDomain,
			CgroupDriver: containerd.CgroupDriver(), CRISocket: string(h.CRISocket()),
			Schedulable: h.Config.NoDedicated, SmallDisk: host.InContainer(), KeepOOMScore: !process.CanLowerOOMScore(),
			Node: kubelet.NodeSettings{
				Labels: h.Config.NodeLabels, Taints: h.Config.NodeTaints, Config: h.Config.KubeletConfig,
				CPUs: h.Config.NodeCPUs, Memory: h.Config.NodeMemory, Disk: h.Config.NodeDisk,
			},
		},
	}
}

func kubeletIdentity(h *local.Host, role string, pki controlplane.PKI) kubelet.Identity {
	i := kubelet.Identity{
		Files: h.Files, HostName: h.Config.HostName, ControlPlane: role == local.ControlPlane,
		Server: local.BalancedAPI(h),
	}
	if i.ControlPlane {
		i.Certificate = pki.NodeCertificate
		return i
	}
	i.Certificate = func(ctx context.Context) ([]byte, error) {
		pair, err := join.RequestNode(ctx, kube.Kubeconfig(kubelet.Kubeconfig), i.HostName)
		return append(pair.Cert, pair.Key...), err
	}
	return i
}

// RunningKubelet returns the container of this host's kubelet.
func RunningKubelet() kubelet.Instance { return kubelet.InstanceIn(local.MainDocker) }
