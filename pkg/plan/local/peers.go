package local

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/peer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// BundlePort is the port at which the agents of control planes serve their bundles. It is the one
// after that of the API server, which a joining host knows.
func BundlePort(apiServer int) int { return apiServer + 1 }

// BundleAddress returns the address at which a control plane serves its bundle.
func BundleAddress(ip string, apiServer int) string {
	return net.JoinHostPort(ip, strconv.Itoa(BundlePort(apiServer)))
}

// Peers returns the client with which this host fetches the bundle of a control plane.
func Peers(h *Host) peer.Fetcher {
	return peer.Fetcher{
		Servers: func(ctx context.Context) []string { return bundleServers(ctx, h) }, Connect: h.Join.PeerTLS,
		Kubernetes: h.Versions.Kubernetes, Arch: h.Config.Arch, Options: []bundle.Option{h.Source().Signed()},
	}
}

// bundleServers lists all control planes that this host knows, but not itself.
func bundleServers(ctx context.Context, h *Host) (all []string) {
	data, _ := h.Join.Data(ctx)                // empty if this host must ask and has no token
	state, _ := balancer.ReadBackends(h.Files) // empty before this host has joined
	first := []string{addresses.Text(h.Config.MasterIP)}
	for _, ip := range slices.Concat(first, data.ControlPlanes, state.Addresses()) {
		server := BundleAddress(ip, h.Config.APIServerPort)
		if ip != "" && ip != h.IP() && !slices.Contains(all, server) {
			all = append(all, server)
		}
	}
	return all
}

// NeedsBundle reports whether no setting names a source of images and this host has no bundle
// that fits.
func NeedsBundle(h *Host) bool {
	if h.ImagesFrom() != FromHost {
		return false
	}
	b, err := bundle.Open(h.Files.Path(offline.HostPath), h.Source().Signed())
	if err != nil {
		return true
	}
	defer b.Close()
	return b.Manifest.Versions.Kubernetes != h.Versions.Kubernetes || !slices.Contains(b.Archs(), h.Config.Arch)
}

// askForBundle looks for a bundle on the control planes, which knows the versions of the
// components. Without one, preflight reports a problem if this host lacks images.
func askForBundle(ctx context.Context, h *Host) error {
	if !NeedsBundle(h) {
		return nil
	}
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	if h.Offer, h.OfferErr = Peers(h).FirstOffer(ctx); h.OfferErr != nil {
		return nil
	}
	h.pushed = h.Offer.Head.Manifest.Versions
	return h.UseCatalogue()
}

// notOffered returns the problem of a host that joins, can fetch no bundle, and cannot pull.
func notOffered(h *Host, pull string) error {
	return &step.Problem{Name: "bundle-offer", Firm: true,
		Text: fmt.Sprintf("this host lacks images of Kubernetes %s for %s, has no bundle of them, can fetch none: %v; "+
			"and cannot pull them: %s", h.Versions.Kubernetes, h.Config.Arch, h.OfferErr, pull),
		Remedy: fmt.Sprintf("run `kube-bootstrap master --bundle FILE` on a control plane with a bundle for %s "+
			"(`kube-bootstrap offline pull --arch` or `offline build --arch` makes one for several architectures), "+
			"or give this host such a bundle with --bundle, or a registry with --registry", h.Config.Arch)}
}
