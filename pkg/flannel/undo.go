package flannel

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// undo stops flanneld and removes what it leaves behind: link, routes,
// firewall rules and the lease. It removes subnet.env last, because that file
// identifies flanneld's routes.
func (d Daemon) undo(ctx context.Context) error {
	if err := d.service().Remove(ctx); err != nil {
		return err
	}
	errs := []error{removeRules(ctx)}
	for _, names := range overlayLinks {
		for _, name := range names {
			errs = append(errs, links.Delete(name))
		}
	}
	if lease, err := ReadLease(d.Files, d.SubnetDir); err == nil {
		d.release(ctx, lease)
		errs = append(errs, links.DeleteRoutesVia(lease.Network))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := unloadModules(ctx, d.Files, d.KeepModule); err != nil {
		return err
	}
	return d.Files.Drop(d.leasePath(), filepath.Join(d.SubnetDir, "."+leaseFile), filepath.Join(d.SubnetDir, wireguardKey))
}

// Left lists the links of flanneld and the table of HostFilter that still exist.
func Left(ctx context.Context) (left []string, err error) {
	if exists, findErr := filterExists(ctx); exists || findErr != nil {
		left, err = append(left, "table "+filterTable+" of nftables"), findErr
	}
	for _, name := range slices.Concat(slices.Collect(maps.Values(overlayLinks))...) {
		_, exists, findErr := links.Find(name)
		if exists {
			left = append(left, "link "+name)
		}
		err = errors.Join(err, findErr)
	}
	return left, err
}

// release deletes the lease, so that others can use the subnet before it
// expires. It ignores errors, because etcd may no longer exist.
func (d Daemon) release(ctx context.Context, lease Lease) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	client, err := d.Etcd.client(ctx)
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = client.Delete(ctx, lease.key())
}

// removeRules removes flanneld's chains of nftables and iptables.
func removeRules(ctx context.Context) error {
	errs := []error{
		netfilter.DeleteNftTable(ctx, "ip", "flannel-ipv4"),
		netfilter.DeleteNftTable(ctx, "ip6", "flannel-ipv6"),
	}
	if host.HasProgram("iptables") {
		errs = append(errs, netfilter.DeleteChains(ctx, isFlannels))
	}
	return errors.Join(errs...)
}

func isFlannels(chain string) bool { return strings.HasPrefix(chain, "FLANNEL-") }
