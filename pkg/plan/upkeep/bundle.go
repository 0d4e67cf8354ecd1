package upkeep

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/peer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
)

// serveBundle serves the bundle of this control plane to other hosts of the cluster. It uses the
// certificate of the API server of this host: joining hosts know its authority by --ca-cert-hash,
// and it is renewed and rotated already. The address is that of the host alone, so that the port
// is not taken on 127.0.0.1.
func (r Agent) serveBundle(ctx context.Context, p parts.Parts) error {
	own := p.ControlPlane.PKI
	readers := join.ImageReaders{
		API:         p.Cluster.As(controlplane.AgentConf),
		Authorities: func() ([]byte, error) { return own.Files.Read(join.ClusterCAFile) },
	}
	return peer.BundleServer{Open: r.openBundle, Allows: readers.Allows, Certificate: own.ServingCertificate}.
		Serve(ctx, local.BundleAddress(own.IP, own.APIPort))
}

// openBundle opens the bundle of the settings in force, which a run may have changed since the
// agent started.
func (r Agent) openBundle() (*bundle.Bundle, error) {
	h, err := r.settings.Host()
	if err != nil {
		return nil, err
	}
	if h.ImagesFrom() == local.FromRegistry {
		return nil, errors.New("it has no bundle, because it loads its images from the registry " + h.Registry.Address)
	}
	return h.Source().Open()
}
