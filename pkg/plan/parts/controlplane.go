package parts

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ControlPlane is the control plane of a host.
type ControlPlane struct {
	PKI        controlplane.PKI
	StaticPods controlplane.StaticPods
	API        controlplane.API

	publisher  join.Publisher
	containerd containerd.Socket
}

func newControlPlane(h *local.Host, own etcd.Member) ControlPlane {
	pods := netip.Prefix{} // pods that are attached to docker0 get their subnets from flannel
	if !h.ManagesNetwork() {
		pods = h.Config.FlannelNetwork.IPv4()
	}
	common := controlplane.HostSettings{
		Files: h.Files, HostName: h.Config.HostName, IP: h.IP(), APIPort: h.Config.APIServerPort,
		ServiceCIDR: h.Config.ServiceNetwork.IPv4(), DNSDomain: h.Config.DNSDomain, Joins: h.Config.Join,
		LeafLife: controlplane.ReadLeafLife(h.Files),
	}
	versions := local.ControlPlaneVersions(h)
	return ControlPlane{
		PKI: controlplane.PKI{
			HostSettings: common, ExtraNames: h.Config.TLSSANs, EtcdUser: etcd.HostUser(h.Config.HostName),
			Sealed: own.Data.Exist(), Now: time.Now,
		},
		StaticPods: controlplane.StaticPods{
			HostSettings: common, PodCIDR: pods, Image: local.ControlPlaneProgram(h),
			KubernetesVersion: versions.Kubernetes, EmulatedVersion: local.EmulatedVersion(h),
			EtcdEndpoints: etcdEndpoints(own, local.BalancedEtcd(h)), Single: !Several(h.Files, h.Config.Join),
			ExtraArgs: h.Config.ExtraArgs, OIDC: h.Config.OIDC, AuditPolicy: h.Config.AuditPolicy,
		},
		API: controlplane.API{HostSettings: common, Version: versions.ProgramVersion("kube-apiserver")},
		publisher: join.Publisher{
			API: kube.Kubeconfig(controlplane.AdminConf), Server: local.BalancedAPI(h), Settings: file.Shared(h.Config),
			Read: func() (join.Published, error) { return published(h) },
		},
		containerd: h.CRISocket(),
	}
}

// published reads what an earlier step issues or saves, for hosts that join.
func published(h *local.Host) (p join.Published, err error) {
	clusterCA, clusterErr := h.Files.Read(join.ClusterCAFile)
	etcdCA, etcdErr := h.Files.Read(join.EtcdCAFile)
	signers, keyErr := local.RequiredKey(h)
	way, err := h.Registry.Marshal()
	p = join.Published{ClusterCA: clusterCA, EtcdCA: etcdCA, Registry: way, VerifyKey: signers}
	return p, cmp.Or(clusterErr, etcdErr, keyErr, err)
}

// etcdEndpoints returns the endpoints of etcd that the API server of this host uses: its own
// etcd, and another one if that is down. It opens 70 connections to each endpoint, so a single
// control plane has only the first. It keeps the second when the others leave: the change
// would restart the only API server.
func etcdEndpoints(own etcd.Member, balanced string) []string {
	if len(own.Peers) == 0 && !controlplane.UsesEtcd(own.Data.Files, balanced) {
		return []string{own.Client.URL()}
	}
	return []string{own.Client.URL(), balanced}
}

// StaticPod returns the static pod of a component of the control plane.
func (c ControlPlane) StaticPod(component string) containerd.StaticPod {
	common := c.PKI.HostSettings
	return containerd.StaticPod{Files: common.Files, Socket: c.containerd, Name: component + "-" + common.HostName}
}

// Watch fails once a component of the control plane crashes repeatedly.
func (c ControlPlane) Watch(component string) func(context.Context) error {
	return c.StaticPod(component).Watch
}

// Settled waits until all components of the control plane are stable.
func (c ControlPlane) Settled() step.Step {
	return c.StaticPods.Settled(func(ctx context.Context, component string) (string, error) {
		return c.StaticPod(component).Running(ctx)
	})
}

// Ready waits for the API server. It fails early if the kubelet or the API server crashes repeatedly.
func (c ControlPlane) Ready() step.Step {
	return Watched(c.API.Ready().Watched(c.Watch("kube-apiserver")))
}

// ReviveAPIServer is the step that restarts an API server that lost its etcd:
// it would wait for the kubelet's growing back-off.
func (c ControlPlane) ReviveAPIServer(server etcd.MemberContainer) step.Step {
	pod := c.StaticPod("kube-apiserver")
	pod.Ready, pod.Needs = c.API.Answers, server.RunningSince
	return pod.Revive()
}

// Publish lets hosts join, and then tells the agent.
func (c ControlPlane) Publish() step.Step {
	publish := c.publisher.Publish()
	tell := c.PKI.Files.Step(publish.ID, publish.Name, func() ([]host.File, error) {
		return []host.File{local.OpenMark}, nil
	})
	return step.Step{
		ID: publish.ID, Name: publish.Name,
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
