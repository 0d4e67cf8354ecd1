package parts

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Watched ends a wait that depends on the kubelet early if that fails.
func Watched(s step.Step) step.Step { return s.Watched(RunningKubelet().Watch) }

// KeepSysctls sets the sysctls of the links that kube-bootstrap creates. It
// changes no other links, because it could not restore the user's values, and
// none of another CNI plugin.
func KeepSysctls(h *local.Host) step.Step {
	var links []string
	if h.OwnNetwork() {
		links = append(links, "docker0")
		if overlay := flannel.Link(h.Config.FlannelBackend); overlay != "" {
			links = append(links, overlay)
		}
	}
	return kubelet.KeepSysctls(h.Files, links...)
}

// ServiceRoute returns the route of this host to Services.
func ServiceRoute(h *local.Host) kubelet.ServiceRoute {
	return kubelet.ServiceRoute{Files: h.Files, Services: h.Config.ServiceNetwork.IPv4(), NodeIP: h.Config.IPAddress}
}

// Kubelet returns the kubelet of a host of the role.
func Kubelet(h *local.Host, role string) kubelet.Kubelet {
	return kubelet.Kubelet{
		Identity: kubeletIdentity(h, role), Docker: local.MainDocker, Image: h.Program("kubelet"),
		NodeIP: h.Config.IPAddress, RestartPolicy: h.Config.RestartPolicy, ExtraArgs: h.Config.ExtraArgs("kubelet"),
		Store: containerd.FindDirs(h.Files).Root,
		Config: kubelet.Configuration{
			ClusterDNS: h.Config.DNSServerIP, DNSDomain: h.Config.DNSDomain,
			CgroupDriver: containerd.CgroupDriver(), CRISocket: h.CRISocket(), Schedulable: h.Config.NoDedicated,
			SmallDisk: host.InContainer(), KeepOOMScore: !process.CanLowerOOMScore(), Own: Own(h),
		},
	}
}

func kubeletIdentity(h *local.Host, role string) kubelet.Identity {
	i := kubelet.Identity{Files: h.Files, HostName: h.Config.HostName, ControlPlane: role == local.Master, Server: local.BalancedAPI(h)}
	if i.ControlPlane {
		i.Certificate = PKI(h).NodeCertificate
		return i
	}
	i.Certificate = func(ctx context.Context) ([]byte, error) {
		pair, err := join.RequestNode(ctx, kube.Kubeconfig(kubelet.Kubeconfig), h.Config.HostName)
		return append(pair.Cert, pair.Key...), err
	}
	return i
}

// Own returns the settings of the node of this host.
func Own(h *local.Host) kubelet.Own {
	return kubelet.Own{
		Labels: h.Config.NodeLabels, Taints: h.Config.NodeTaints, Config: h.Config.KubeletConfig,
		CPUs: h.Config.NodeCPUs, Memory: h.Config.NodeMemory, Disk: h.Config.NodeDisk,
	}
}

// RunningKubelet returns the container of this host's kubelet.
func RunningKubelet() kubelet.Container { return kubelet.ContainerIn(local.MainDocker) }
