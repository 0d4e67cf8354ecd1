package flannel

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// leaseSeconds is the duration of flanneld's leases: 24 hours.
const leaseSeconds = 24 * 60 * 60

// claim leases the reserved subnet of this host before flanneld starts,
// because flanneld would choose a subnet itself. flanneld adopts the lease
// that has its public IP, and completes it. This host's etcd user may write
// no other lease.
func (d Daemon) claim(ctx context.Context) error {
	client, err := d.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	subnet, err := reserved(ctx, client, d.Host)
	if err != nil {
		return err
	}
	if !subnet.IsValid() {
		return noSubnet(d.Host)
	}
	all, err := leases(ctx, client)
	if err != nil {
		return err
	}
	if err := d.elsewhere(ctx, client, all, subnet); err != nil {
		return err
	}
	has := func(l hostLease) bool { return l.subnet == subnet && l.host.String() == d.PublicIP }
	if slices.ContainsFunc(all, has) {
		return nil
	}
	return d.lend(ctx, client, subnet)
}

func (d Daemon) lend(ctx context.Context, client *clientv3.Client, subnet netip.Prefix) error {
	granted, err := client.Grant(ctx, leaseSeconds)
	if err != nil {
		return fmt.Errorf("lease the subnet %s: %w", subnet, err)
	}
	if _, err := client.Put(ctx, LeaseKey(subnet), fmt.Sprintf(`{"PublicIP":%q}`, d.PublicIP), clientv3.WithLease(granted.ID)); err != nil {
		return fmt.Errorf("lease the subnet %s: %w", subnet, err)
	}
	return nil
}

// elsewhere returns a problem if another host still has a lease with the
// address of this one, because flanneld would adopt that lease. The other
// host is gone, as an address belongs to one host.
func (d Daemon) elsewhere(ctx context.Context, client *clientv3.Client, all []hostLease, own netip.Prefix) error {
	for _, l := range all {
		if l.host.String() != d.PublicIP || l.subnet == own {
			continue
		}
		found, err := client.Get(ctx, reservationOf(l.subnet))
		if err != nil {
			return err
		}
		other := "another host"
		if len(found.Kvs) > 0 {
			other = string(found.Kvs[0].Value)
		}
		return &step.Problem{Name: "address-leased", Firm: true, Text: fmt.Sprintf("%s had the address %s and still has the subnet %s", other, d.PublicIP, l.subnet),
			Remedy: "if that host is gone for good, run `kube-bootstrap forget " + other + "` on a control plane"}
	}
	return nil
}

func noSubnet(host string) error {
	return &step.Problem{Name: "no-subnet", Firm: true, Text: "no subnet is reserved for host " + host + ", because it was removed from the cluster",
		Remedy: "run `kube-bootstrap turndown`, and join it again"}
}
