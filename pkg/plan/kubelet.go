package plan

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func (h *Host) runtime() containerd.Runtime {
	return containerd.Runtime{
		Files: h.Files, Units: h.Units, Socket: h.criSocket(),
		SandboxImage: h.Image("pause"), KeepImages: h.Config.KeepImages, Registry: h.registry != nil,
		Images: h.podImages(),
	}
}

// reviveAPIServer is the step that restarts an API server that lost its etcd:
// it would wait for the kubelet's growing back-off.
func (h *Host) reviveAPIServer() step.Step {
	return h.runtime().Revive(containerd.StaticPod{
		Name: "kube-apiserver-" + h.Config.HostName, Ready: h.controlPlane().Answers, Needs: h.etcd().RunningSince,
	})
}

// reviveLate returns the steps that restart the controller manager and the
// scheduler if they crashed.
func (h *Host) reviveLate() []step.Step {
	var all []step.Step
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		all = append(all, h.runtime().Revive(containerd.StaticPod{Name: name + "-" + h.Config.HostName}))
	}
	return all
}

// watched ends the wait of a step early if the kubelet fails, because the
// wait depends on it.
func (h *Host) watched(s step.Step) step.Step {
	if s.Apply == nil {
		return s // an omitted step, see step.Plan.Compact
	}
	return s.Watched(h.kubelet(Worker).Watch)
}

// apiServerReady waits for the API server, and fails early if the kubelet or
// the API server's container crashes repeatedly.
func (h *Host) apiServerReady() step.Step {
	return h.watched(h.controlPlane().Ready().Watched(h.runtime().Watch("kube-apiserver-" + h.Config.HostName)))
}

func (h *Host) cni() step.Step { return h.runtime().WriteCNI(h.podSubnet) }

func (h *Host) keepPods() step.Step { return h.runtime().FollowLease(h.podSubnet) }

// podSubnet returns the subnet of this host's pods, and their MTU.
func (h *Host) podSubnet() (netip.Prefix, int, error) {
	l, err := h.lease()
	return l.Subnet, l.MTU, err
}

// keepSysctls sets the sysctls of the links that kube-bootstrap creates. It
// changes no other links, because it could not restore the user's values, and
// none of another CNI plugin.
func (h *Host) keepSysctls() step.Step {
	var links []string
	if h.ownNetwork() {
		links = append(links, "docker0", flannel.Link(h.Config.FlannelBackend))
	}
	return h.kubelet(Worker).KeepSysctls(slices.DeleteFunc(links, func(l string) bool { return l == "" })...)
}

func (h *Host) podProblems(ctx context.Context) error {
	if h.installed() {
		return nil
	}
	return errors.Join(h.runtime().MissingProblem(), h.oldContainerd(ctx), h.runtime().CNIProblems(h.ownNetwork()), h.runtime().PodProblems(ctx))
}

// oldContainerd returns a problem if containerd is older than the oldest
// version that the wanted Kubernetes supports. It skips a CRI socket that the
// user configured, which may belong to another runtime.
func (h *Host) oldContainerd(ctx context.Context) error {
	_, m, err := catalog.Kubernetes(h.Config.KubernetesVersion)
	if err != nil || h.Config.CRISocket != "" {
		return err
	}
	return h.runtime().OldProblem(ctx, m.Containerd)
}

func (h *Host) kubelet(role string) kubelet.Kubelet {
	k := kubelet.Kubelet{
		Files: h.Files, Docker: mainDocker, Image: h.program("kubelet"),
		HostName: h.Config.HostName, NodeIP: h.Config.IPAddress,
		ClusterDNS: h.Config.DNSServerIP, DNSDomain: h.Config.DNSDomain,
		CgroupDriver: containerd.CgroupDriver(), CRISocket: h.criSocket(), RestartPolicy: h.Config.RestartPolicy,
		Server: h.balancedAPI(), SmallDisk: host.InContainer(), KeepOOMScore: !host.CanLowerOOMScore(),
		Own: kubelet.Own{
			Labels: h.Config.NodeLabels, Taints: h.Config.NodeTaints, Config: h.Config.KubeletConfig,
			CPUs: h.Config.NodeCPUs, Memory: h.Config.NodeMemory, Disk: h.Config.NodeDisk,
		},
	}
	k.Certificate = func(ctx context.Context) ([]byte, error) {
		pair, err := join.RequestNode(ctx, kube.Kubeconfig(kubelet.Kubeconfig), h.Config.HostName)
		return append(pair.Cert, pair.Key...), err
	}
	if role == Master {
		control := h.controlPlane()
		k.ControlPlane, k.Schedulable = true, h.Config.NoDedicated
		k.Certificate = control.NodeCertificate
	}
	return k
}

// approver returns the approver of serving certificates for kubelets.
func (h *Host) approver(kubeconfig string) join.Approver {
	return join.Approver{
		API:      kube.Kubeconfig(kubeconfig),
		Reserved: []netip.Prefix{mustPrefix(h.Config.FlannelNetwork), mustPrefix(h.Config.ServiceNetwork)},
		Hosts:    h.knownHosts, Control: h.Config.HostName, Certificate: h.kubeletFingerprint,
	}
}

// kubeletFingerprint returns the SHA-256 of the client certificate of this
// host's kubelet.
func (h *Host) kubeletFingerprint() (string, error) {
	data, err := h.Files.Read(join.KubeletCertificate)
	if err != nil {
		return "", err
	}
	cert, err := pki.ParseCertificate(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", join.KubeletCertificate, err)
	}
	return pki.Fingerprint(cert), nil
}

// servingCertificate approves the serving certificate of this control plane.
func (h *Host) servingCertificate() step.Step {
	return h.approver(controlplane.AdminConf).Own(h.Files, h.Config.HostName)
}

// ApproveNodes answers the pending requests of joining kubelets. The agent
// calls it.
func (h *Host) ApproveNodes(ctx context.Context) error {
	ctx, cancel := step.Limited(h.limited(ctx))
	defer cancel()
	approver := join.NodeApprover{API: kube.Kubeconfig(controlplane.AgentConf), ControlPlanes: h.controlPlaneNames}
	return errors.Join(approver.Approve(ctx), approver.DropUsed(ctx))
}

// Approve answers the pending requests for serving certificates. The agent
// calls it.
func (h *Host) Approve(ctx context.Context) error {
	ctx, cancel := step.Limited(h.limited(ctx))
	defer cancel()
	_, refused, err := h.approver(controlplane.AgentConf).Approve(ctx)
	for _, r := range refused {
		err = errors.Join(err, fmt.Errorf("request %s of node %s was not approved: %w", r.Name, r.Node, r.Reason))
	}
	return err
}

// Kubectl returns the path of the kubectl of this host's kubelet; running is
// false if no kubelet runs.
func Kubectl(ctx context.Context) (path string, running bool, err error) {
	return kubelet.Kubelet{Docker: mainDocker}.Kubectl(ctx)
}
