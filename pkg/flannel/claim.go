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
func claim(ctx context.Context, etcd Etcd, host, publicIP string) error {
	client, err := etcd.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	subnet, err := reserved(ctx, client, host)
	if err != nil {
		return err
	}
	if !subnet.IsValid() {
		return noSubnet(host)
	}
	all, err := leases(ctx, client)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(l hostLease) bool { return l.host.String() != publicIP })
	if i := slices.IndexFunc(all, func(l hostLease) bool { return l.subnet != subnet }); i >= 0 {
		return elsewhere(ctx, client, all[i])
	}
	if len(all) > 0 {
		return nil
	}
	return lend(ctx, client, subnet, publicIP)
}

func lend(ctx context.Context, client *clientv3.Client, subnet netip.Prefix, publicIP string) error {
	granted, err := client.Grant(ctx, leaseSeconds)
	if err == nil {
		_, err = client.Put(ctx, LeaseKey(subnet), fmt.Sprintf(`{"PublicIP":%q}`, publicIP), clientv3.WithLease(granted.ID))
	}
	if err != nil {
		return fmt.Errorf("lease the subnet %s: %w", subnet, err)
	}
	return nil
}

// elsewhere returns the problem that another host still has a lease with the
// address of this one, because flanneld would adopt that lease. The other
// host is gone, as an address belongs to one host.
func elsewhere(ctx context.Context, client *clientv3.Client, lease hostLease) error {
	found, err := client.Get(ctx, reservationOf(lease.subnet))
	if err != nil {
		return err
	}
	other := "another host"
	if len(found.Kvs) > 0 {
		other = string(found.Kvs[0].Value)
	}
	return &step.Problem{Name: "address-leased", Firm: true, Text: fmt.Sprintf("%s had the address %s and still has the subnet %s", other, lease.host, lease.subnet),
		Remedy: "if that host is gone for good, run `kube-bootstrap forget " + other + "` on a control plane"}
}

func noSubnet(host string) error {
	return &step.Problem{Name: "no-subnet", Firm: true, Text: "no subnet is reserved for host " + host + ", because it was removed from the cluster",
		Remedy: "run `kube-bootstrap turndown`, and join it again"}
}
