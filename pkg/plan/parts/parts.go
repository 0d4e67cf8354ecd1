// Package parts builds the parts of a host from its settings: etcd, flanneld,
// docker0, the kubelet, the control plane. It also contains the steps that plans,
// renewals and the agent share.
package parts

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Bootstrap returns the bootstrap Docker.
func Bootstrap(h *local.Host) bootstrapdocker.Daemon {
	return bootstrapdocker.Daemon{
		Files: h.Files, Units: h.Units,
		KeepImages: h.Config.KeepImages, WhileMainStopped: MainDocker(h).WhileStopped,
	}
}

// Network returns flannel's network.
func Network(h *local.Host) flannel.Network {
	own, _ := netip.ParseAddr(h.Config.IPAddress) // validated by preflight
	return flannel.Network{CIDR: local.Prefix(h.Config.FlannelNetwork), Backend: h.Config.FlannelBackend, Own: own}
}

// Flanneld returns flanneld's settings.
func Flanneld(h *local.Host) flannel.Daemon {
	return flannel.Daemon{
		Docker: local.BootstrapDocker, Files: h.Files, Image: h.Image("flannel"), Etcd: FlannelEtcd(h), Host: h.Config.HostName,
		PublicIP: h.Config.IPAddress,
		IPMasq:   h.Config.FlannelIPMasq, Backend: h.Config.FlannelBackend,
		SubnetDir: h.Config.FlannelSubnetDir, RestartPolicy: h.Config.RestartPolicy,
		Network: local.Prefix(h.Config.FlannelNetwork), KeepModule: func(ctx context.Context, module string) bool { return keepModule(ctx, h, module) },
	}
}

// FlannelEtcd returns the access of flanneld to etcd, through the balancer.
func FlannelEtcd(h *local.Host) flannel.Etcd {
	return flannel.Etcd{
		Files: h.Files, Endpoints: []string{local.BalancedEtcd(h)},
		CA: join.EtcdCAFile, Cert: join.FlannelCertFile, Key: join.FlannelKeyFile,
	}
}

// MainDocker returns the main Docker.
func MainDocker(h *local.Host) maindocker.Daemon {
	return maindocker.Daemon{Files: h.Files, Units: h.Units, Engine: local.MainDocker}
}

// Bridge returns docker0 of the main Docker.
func Bridge(h *local.Host) maindocker.Bridge {
	return maindocker.Bridge{Docker: MainDocker(h), Lease: lease(h)}
}

// Overlay returns flannel's network, as docker0 gets its packets.
func Overlay(h *local.Host) maindocker.Overlay {
	return maindocker.Overlay{Docker: MainDocker(h), Lease: lease(h), Link: flannel.Link(h.Config.FlannelBackend), Hosts: HostNetwork(h)}
}

// lease returns the lease of this host, as docker0 and the pods use it.
func lease(h *local.Host) func() (maindocker.Lease, error) {
	return func() (maindocker.Lease, error) {
		l, err := h.Lease()
		if err != nil {
			return maindocker.Lease{}, err
		}
		return maindocker.Fit(h.Files, maindocker.Lease(l))
	}
}

// HostNetwork returns the network of this host's interface. It is invalid if
// no interface has the address.
func HostNetwork(h *local.Host) netip.Prefix {
	found, _ := links.All() // preflight reports errors
	for _, l := range found {
		for _, a := range l.Addrs {
			if a.Addr().String() == h.Config.IPAddress {
				return a.Masked()
			}
		}
	}
	return netip.Prefix{}
}

// controlPlane returns what the parts of this host's control plane have in common.
func controlPlane(h *local.Host) controlplane.Host {
	return controlplane.Host{
		Files: h.Files, HostName: h.Config.HostName, IP: h.Config.IPAddress, APIPort: h.Config.APIServerPort,
		ServiceCIDR: local.Prefix(h.Config.ServiceNetwork), DNSDomain: h.Config.DNSDomain, Joins: h.Config.Join, LeafLife: controlplane.ReadLeafLife(h.Files),
	}
}

// PKI returns the certificates and keys of this host's control plane.
func PKI(h *local.Host) controlplane.PKI {
	return controlplane.PKI{
		Host: controlPlane(h), ExtraNames: h.Config.TLSSANs, EtcdUser: etcd.HostUser(h.Config.HostName),
		Sealed: etcd.DataOf(h.Files).Exist(), Now: time.Now,
	}
}

// StaticPods returns the static pods of this host and their files.
func StaticPods(h *local.Host) controlplane.StaticPods {
	return controlplane.StaticPods{
		Host: controlPlane(h), PodCIDR: podCIDR(h), Image: h.Program, KubernetesVersion: h.Versions.Kubernetes,
		EtcdEndpoints: etcdEndpoints(h), Single: !Several(h),
		ExtraArgs: h.Config.ExtraArgs, OIDC: h.Config.OIDC, AuditPolicy: h.Config.AuditPolicy,
	}
}

// etcdEndpoints returns the endpoints of etcd that the API server of this host uses: its own
// etcd, and another one if that is down. It opens 70 connections to each endpoint, so a single
// control plane has only the first. It keeps the second when the others leave: the change
// would restart the only API server.
func etcdEndpoints(h *local.Host) []string {
	own := Etcd(h).URL()
	if len(Others(h)) == 0 && !UsesOtherEtcd(h) {
		return []string{own}
	}
	return []string{own, local.BalancedEtcd(h)}
}

// UsesOtherEtcd reports whether the API server of this host uses another etcd while that
// of its host is down.
func UsesOtherEtcd(h *local.Host) bool {
	return controlplane.UsesEtcd(h.Files, local.BalancedEtcd(h))
}

// API returns the API server of this host.
func API(h *local.Host) controlplane.API {
	return controlplane.API{Host: controlPlane(h), Version: h.Versions.ProgramVersion("kube-apiserver")}
}

// Publish lets hosts join, with certificates that an earlier step issues, and then tells the agent.
func Publish(h *local.Host) step.Step {
	publish := later("let hosts join", func() (step.Step, error) {
		clusterCA, clusterErr := h.Files.Read(join.ClusterCAFile)
		etcdCA, etcdErr := h.Files.Read(join.EtcdCAFile)
		signers, keyErr := local.RequiredKey(h)
		way, err := h.Registry.Marshal()
		return join.Publisher{
			API: kube.Kubeconfig(controlplane.AdminConf), Server: local.BalancedAPI(h), ClusterCA: clusterCA, EtcdCA: etcdCA,
			Settings: file.Shared(h.Config), Registry: way, VerifyKey: signers,
		}.Publish(), cmp.Or(clusterErr, etcdErr, keyErr, err)
	})
	tell := h.Files.Step(publish.Name, func() ([]host.File, error) { return []host.File{local.OpenMark}, nil })
	return step.Step{
		Name: publish.Name,
		Check: func(ctx context.Context) (step.Diff, error) {
			diff, err := publish.Check(ctx)
			if err != nil {
				return nil, err
			}
			more, err := tell.Check(ctx)
			return append(diff, more...), err
		},
		Apply: func(ctx context.Context) error {
			if err := publish.Apply(ctx); err != nil {
				return err
			}
			return tell.Apply(ctx)
		},
	}
}

// Addons returns kube-proxy, CoreDNS and other manifests of the cluster.
func Addons(h *local.Host) addon.Addons {
	ca, _ := h.Files.Read(join.ClusterCAFile) // missing only before the certificates are issued, see applyAddons
	kubeletCA, _ := h.Files.Read(controlplane.KubeletCAFile)
	// Pods of addons use the single control plane, or the kubernetes Service, which
	// several control planes need and which is usable slightly later.
	podServer, forward := "", ""
	if !Several(h) {
		podServer = net.JoinHostPort(h.Config.IPAddress, strconv.Itoa(h.Config.APIServerPort))
	}
	// Otherwise CoreDNS would refuse to start.
	// https://github.com/coredns/coredns/blob/v1.14.6/plugin/forward/setup.go#L182-L184
	if kubelet.HasResolver(h.Files) {
		forward = "/etc/resolv.conf"
	}
	return addon.Addons{API: kube.Kubeconfig(controlplane.AdminConf), Settings: addon.Settings{
		ProxyImage: h.Program("kube-proxy"), DNSImage: h.Image("coredns"), FlannelImage: h.Image("flannel"), Backend: h.Config.FlannelBackend,
		Server: local.BalancedAPI(h), PodServer: podServer,
		Forward: forward, PodCIDR: h.Config.FlannelNetwork, DNSDomain: h.Config.DNSDomain, DNSIP: h.Config.DNSServerIP,
		ClusterCA: ca, ProxyFields: h.Config.ProxyFields(), KubeletCA: kubeletCA, MetricsImage: h.Image("metrics-server"),
		LocalPathImage: h.Image("local-path-provisioner"), HelperImage: h.Image("hyperkube"), VolumesDir: kubelet.VolumesDir,
		ControllerImage: h.Image("metallb-controller"), SpeakerImage: h.Image("metallb-speaker"),
		LoadBalancerAddresses: h.Config.LoadBalancerAddresses,
	}}
}

// ApplyAddons is the step that applies kube-proxy and CoreDNS.
func ApplyAddons(h *local.Host) step.Step {
	return later("apply kube-proxy and CoreDNS", func() (step.Step, error) {
		_, err := h.Files.Read(join.ClusterCAFile)
		return Addons(h).Apply(), err
	})
}

// Node returns the node of this host, as the owner of a kubeconfig reaches it.
func Node(h *local.Host, kubeconfig string) node.Node {
	agent := RunningKubelet()
	return node.Node{API: kube.Kubeconfig(kubeconfig), Name: h.Config.HostName, Explain: agent.Explain, Started: agent.StartedAt}
}

// later returns a step that can only be built once earlier steps have been
// applied. Before that, its Check returns a Diff.
func later(name string, build func() (step.Step, error)) step.Step {
	return step.Step{
		Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			s, err := build()
			if errors.Is(err, fs.ErrNotExist) {
				return step.Diff{name}, nil
			}
			if err != nil {
				return nil, err
			}
			return s.Check(ctx)
		},
		Apply: func(ctx context.Context) error {
			s, err := build()
			if err != nil {
				return err
			}
			return s.Apply(ctx)
		},
	}
}

// keepModule reports whether a module must stay loaded: this host is a
// container, which shares the kernel, or the user's configuration loads the
// module at boot, or the main Docker needs br_netfilter, which it loads only
// when it starts.
func keepModule(ctx context.Context, h *local.Host, module string) bool {
	return host.InContainer() || slices.Contains(kernel.BootModules(h.Files), module) ||
		module == "br_netfilter" && MainDocker(h).NeedsNetfilter(ctx)
}
