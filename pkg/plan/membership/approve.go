package membership

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func approver(own parts.Etcd, network parts.PodNetwork, kubeconfig string) join.Approver {
	member := own.Member
	return join.Approver{
		API:      kube.Kubeconfig(kubeconfig),
		Reserved: []netip.Prefix{network.Flannel.CIDR, network.Services},
		Hosts:    func(ctx context.Context) ([]join.ClusterHost, error) { return KnownHosts(ctx, own.Client) },
		Control:  member.Name, Certificates: func() ([]string, error) { return kubeletFingerprints(member.Data.Files) },
	}
}

// kubeletFingerprints returns the SHA-256 of each client certificate that the
// kubelet of this host has or had.
func kubeletFingerprints(files host.Files) (all []string, err error) {
	err = host.Each(files.Match(join.KubeletCertificates), func(path string) error {
		data, err := files.Read(path)
		if err != nil {
			return err
		}
		cert, err := pki.ParseCertificate(data)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, pki.Fingerprint(cert))
		return nil
	})
	if len(all) > 0 {
		return all, nil
	}
	return nil, err
}

// ServingCertificate approves the serving certificate of this control plane.
func ServingCertificate(own parts.Etcd, network parts.PodNetwork) step.Step {
	return approver(own, network, controlplane.AdminConf).ApproveOwn(own.Member.Data.Files, own.Member.Name)
}

// ApproveNodes answers the pending requests of joining kubelets.
func ApproveNodes(ctx context.Context, own parts.Etcd) error {
	approver := join.NodeApprover{API: kube.Kubeconfig(controlplane.AgentConf), ControlPlanes: own.ControlPlaneNames}
	return errors.Join(approver.Approve(ctx), approver.DropUsed(ctx))
}

// Approve answers the pending requests for serving certificates.
func Approve(ctx context.Context, own parts.Etcd, network parts.PodNetwork) error {
	return approver(own, network, controlplane.AgentConf).Approve(ctx)
}
