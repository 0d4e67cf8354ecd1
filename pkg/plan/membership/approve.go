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
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func approver(h *local.Host, kubeconfig string) join.Approver {
	return join.Approver{
		API:      kube.Kubeconfig(kubeconfig),
		Reserved: []netip.Prefix{h.Config.FlannelNetwork.IPv4(), h.Config.ServiceNetwork.IPv4()},
		Hosts:    func(ctx context.Context) ([]join.Host, error) { return knownHosts(ctx, h) },
		Control:  h.Config.HostName, Certificates: func() ([]string, error) { return kubeletFingerprints(h) },
	}
}

// kubeletFingerprints returns the SHA-256 of each client certificate that the
// kubelet of this host has or had.
func kubeletFingerprints(h *local.Host) (all []string, err error) {
	err = host.Each(h.Files.Match(join.KubeletCertificates), func(path string) error {
		data, err := h.Files.Read(path)
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
func ServingCertificate(h *local.Host) step.Step {
	return approver(h, controlplane.AdminConf).Own(h.Files, h.Config.HostName)
}

// ApproveNodes answers the pending requests of joining kubelets.
func ApproveNodes(ctx context.Context, h *local.Host) error {
	approver := join.NodeApprover{API: kube.Kubeconfig(controlplane.AgentConf), ControlPlanes: parts.ControlPlaneNames(h)}
	return errors.Join(approver.Approve(ctx), approver.DropUsed(ctx))
}

// Approve answers the pending requests for serving certificates.
func Approve(ctx context.Context, h *local.Host) error {
	return approver(h, controlplane.AgentConf).Approve(ctx)
}
