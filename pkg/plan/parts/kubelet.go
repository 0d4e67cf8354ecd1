package parts

import (
	"context"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Runtime returns the container runtime of the pods.
func Runtime(h *local.Host) containerd.Runtime {
	return containerd.Runtime{
		Files: h.Files, Units: h.Units, Socket: h.CRISocket(),
		SandboxImage: h.Image("pause"), KeepImages: h.Config.KeepImages, Registry: h.Registry != nil,
		Images: podImages(h),
	}
}

// Watched ends the wait of a step early if the kubelet fails, because the
// wait depends on it.
func Watched(h *local.Host, s step.Step) step.Step {
	if s.Apply == nil {
		return s // an omitted step, see step.Plan.Compact
	}
	return s.Watched(Kubelet(h, local.Worker).Watch)
}

// CNI is the step that writes the CNI configuration.
func CNI(h *local.Host) step.Step {
	return Runtime(h).WriteCNI(func() (netip.Prefix, int, error) { return podSubnet(h) })
}

// KeepPods is the step that removes pods with addresses of an earlier subnet.
func KeepPods(h *local.Host) step.Step {
	return Runtime(h).FollowLease(func() (netip.Prefix, int, error) { return podSubnet(h) })
}

// podSubnet returns the subnet of this host's pods, and their MTU.
func podSubnet(h *local.Host) (netip.Prefix, int, error) {
	l, err := h.Lease()
	return l.Subnet, l.MTU, err
}

// KeepSysctls sets the sysctls of the links that kube-bootstrap creates. It
// changes no other links, because it could not restore the user's values, and
// none of another CNI plugin.
func KeepSysctls(h *local.Host) step.Step {
	var links []string
	if h.OwnNetwork() {
		links = append(links, "docker0", flannel.Link(h.Config.FlannelBackend))
	}
	return Kubelet(h, local.Worker).KeepSysctls(slices.DeleteFunc(links, func(l string) bool { return l == "" })...)
}

// Kubelet returns the kubelet of a host of the role.
func Kubelet(h *local.Host, role string) kubelet.Kubelet {
	k := kubelet.Kubelet{
		Files: h.Files, Docker: local.MainDocker, Image: h.Program("kubelet"),
		HostName: h.Config.HostName, NodeIP: h.Config.IPAddress,
		ClusterDNS: h.Config.DNSServerIP, DNSDomain: h.Config.DNSDomain,
		CgroupDriver: containerd.CgroupDriver(), CRISocket: h.CRISocket(), RestartPolicy: h.Config.RestartPolicy,
		Server: local.BalancedAPI(h), SmallDisk: host.InContainer(), KeepOOMScore: !host.CanLowerOOMScore(), ExtraArgs: h.Config.ExtraArgs("kubelet"),
		Own: kubelet.Own{
			Labels: h.Config.NodeLabels, Taints: h.Config.NodeTaints, Config: h.Config.KubeletConfig,
			CPUs: h.Config.NodeCPUs, Memory: h.Config.NodeMemory, Disk: h.Config.NodeDisk,
		},
	}
	k.Certificate = func(ctx context.Context) ([]byte, error) {
		pair, err := join.RequestNode(ctx, kube.Kubeconfig(kubelet.Kubeconfig), h.Config.HostName)
		return append(pair.Cert, pair.Key...), err
	}
	if role == local.Master {
		k.ControlPlane, k.Schedulable = true, h.Config.NoDedicated
		k.Certificate = PKI(h).NodeCertificate
	}
	return k
}

// Kubectl returns the path of the kubectl of this host's kubelet; running is
// false if no kubelet runs.
func Kubectl(ctx context.Context) (path string, running bool, err error) {
	return kubelet.Kubelet{Docker: local.MainDocker}.Kubectl(ctx)
}
