package flannel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// reservedKey is the prefix of one key per host: the subnet, with the host's
// name as its value. A lease expires when its host is off for a day; a
// reservation remains until the host leaves the cluster.
const reservedKey = prefix + "/reserved/"

// Reserve returns the reserved subnet of a host. It reserves one if there is
// none, or if the current one is outside of the network.
func (n NetworkConfig) Reserve(ctx context.Context, client *clientv3.Client, host string) (netip.Prefix, error) {
	var subnet netip.Prefix
	err := step.Until(ctx, func(ctx context.Context) (err error) {
		subnet, err = n.tryReserve(ctx, client, host)
		if err != nil && !errors.Is(err, errMeanwhile) {
			return step.Final(err)
		}
		return err
	}, nil)
	return subnet, step.Wrap(err, "reserve a subnet for host %s", host)
}

// errMeanwhile is returned if the reservations have changed since they were read.
var errMeanwhile = errors.New("another subnet was reserved meanwhile")

func (n NetworkConfig) tryReserve(ctx context.Context, client *clientv3.Client, host string) (netip.Prefix, error) {
	now, err := reservations(ctx, client)
	if err != nil {
		return netip.Prefix{}, err
	}
	own := reservedFor(now.Kvs, host)
	if own.IsValid() && n.fits(own) {
		return own, nil
	}
	leased, err := leases(ctx, client)
	if err != nil {
		return own, err
	}
	subnet, err := n.pick(now.Kvs, leased)
	if err != nil {
		return subnet, err
	}
	changes := []clientv3.Op{clientv3.OpPut(reservationOf(subnet), host)}
	if own.IsValid() {
		changes = append(changes, clientv3.OpDelete(reservationOf(own)), clientv3.OpDelete(LeaseKey(own)))
	}
	unchanged := clientv3.Compare(clientv3.ModRevision(reservedKey).WithPrefix(), "<", now.Header.Revision+1)
	done, err := client.Txn(ctx).If(unchanged).Then(changes...).Commit()
	if err == nil && !done.Succeeded {
		err = errMeanwhile
	}
	return subnet, err
}

// Reserved returns the subnet that is reserved for a host, if it is in the network.
func (n NetworkConfig) Reserved(ctx context.Context, client *clientv3.Client, host string) (netip.Prefix, error) {
	subnet, err := Reserved(ctx, client, host)
	if !n.fits(subnet) {
		return netip.Prefix{}, err
	}
	return subnet, err
}

// Reserved returns the subnet of any network that is reserved for a host.
func Reserved(ctx context.Context, client *clientv3.Client, host string) (netip.Prefix, error) {
	now, err := reservations(ctx, client)
	if err != nil {
		return netip.Prefix{}, err
	}
	return reservedFor(now.Kvs, host), nil
}

func reservations(ctx context.Context, client *clientv3.Client) (*clientv3.GetResponse, error) {
	now, err := client.Get(ctx, reservedKey, clientv3.WithPrefix())
	return now, step.Wrap(err, "read %s", reservedKey)
}

// Holders returns, by name, the addresses of the hosts that have leased their subnet.
func Holders(ctx context.Context, client *clientv3.Client) (map[string]netip.Addr, error) {
	now, err := reservations(ctx, client)
	if err != nil {
		return nil, err
	}
	all, err := leases(ctx, client)
	hosts := map[string]netip.Addr{}
	for _, kv := range now.Kvs {
		for _, l := range all {
			if l.subnet == subnetIn(kv) {
				hosts[string(kv.Value)] = l.host
			}
		}
	}
	return hosts, err
}

// Release deletes the addresses, the reservation and the lease of a host.
func Release(ctx context.Context, client *clientv3.Client, host string) error {
	subnet, err := Reserved(ctx, client, host)
	if err != nil || !subnet.IsValid() {
		return errors.Join(err, forgetAddresses(ctx, client, host, netip.Addr{}))
	}
	if err := forgetAddresses(ctx, client, host, netip.Addr{}); err != nil {
		return err
	}
	_, err = client.Txn(ctx).Then(clientv3.OpDelete(reservationOf(subnet)),
		clientv3.OpDelete(LeaseKey(subnet))).Commit()
	return step.Wrap(err, "release the subnet %s of host %s", subnet, host)
}

func reservationOf(subnet netip.Prefix) string { return reservedKey + keyOf(subnet) }

// LeaseKey returns the etcd key of a subnet's lease.
func LeaseKey(subnet netip.Prefix) string { return subnetsKey + keyOf(subnet) }

func keyOf(subnet netip.Prefix) string {
	return strings.ReplaceAll(subnet.Masked().String(), "/", "-")
}

func reservedFor(kvs []*mvccpb.KeyValue, host string) netip.Prefix {
	for _, kv := range kvs {
		if string(kv.Value) == host {
			return subnetIn(kv)
		}
	}
	return netip.Prefix{}
}

func subnetIn(kv *mvccpb.KeyValue) netip.Prefix {
	subnet, _ := netip.ParsePrefix(strings.Replace(strings.TrimPrefix(string(kv.Key), reservedKey), "-", "/", 1))
	return subnet
}

// fits reports whether flanneld can lease the subnet in this network.
func (n NetworkConfig) fits(subnet netip.Prefix) bool {
	return subnet.Bits() == subnetLen && n.CIDR.Contains(subnet.Addr()) && subnet.Addr() != n.CIDR.Addr()
}

// pick returns a free subnet. It starts at a random subnet, so that the
// subnet of a removed host is not reused at once.
func (n NetworkConfig) pick(reserved []*mvccpb.KeyValue, leased []hostLease) (netip.Prefix, error) {
	taken := map[netip.Prefix]bool{}
	for _, kv := range reserved {
		taken[subnetIn(kv)] = true
	}
	count := 1 << (subnetLen - n.CIDR.Bits())
	first := rand.IntN(count)
	for i := range count {
		subnet := n.subnet((first + i) % count)
		overlaps := func(l hostLease) bool { return l.subnet.Overlaps(subnet) }
		if n.fits(subnet) && !taken[subnet] && !slices.ContainsFunc(leased, overlaps) {
			return subnet, nil
		}
	}
	return netip.Prefix{}, &step.Problem{Name: "flannel-network-full", Firm: true,
		Text:   fmt.Sprintf("every subnet of the network %s is reserved", n.CIDR),
		Remedy: "remove dead hosts with `kube-bootstrap forget` on a control plane"}
}

func (n NetworkConfig) subnet(number int) netip.Prefix {
	ip := n.CIDR.Addr().As4()
	at := binary.BigEndian.Uint32(ip[:]) + uint32(number)<<(32-subnetLen)
	binary.BigEndian.PutUint32(ip[:], at)
	return netip.PrefixFrom(netip.AddrFrom4(ip), subnetLen)
}

// leaseSeconds is the duration of flanneld's leases: 24 hours.
const leaseSeconds = 24 * 60 * 60

// claim leases the reserved subnet of this host before flanneld starts, because
// flanneld would choose a subnet itself. flanneld adopts the lease that has its
// public IP, and completes it. This host's etcd user may write no other lease.
// https://github.com/flannel-io/flannel/blob/v0.28.10/pkg/subnet/etcd/local_manager.go#L154-L165
func claim(ctx context.Context, etcd EtcdAccess, host string, publicIP netip.Addr) error {
	client, err := etcd.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	subnet, err := Reserved(ctx, client, host)
	if err != nil {
		return err
	}
	if !subnet.IsValid() {
		return &step.Problem{Name: "no-subnet", Firm: true,
			Text:   "no subnet is reserved for host " + host + ", because it was removed from the cluster",
			Remedy: "run `kube-bootstrap turndown`, and join it again"}
	}
	own, err := leasesOf(ctx, client, publicIP)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(own, func(l hostLease) bool { return l.subnet != subnet }); i >= 0 {
		return elsewhere(ctx, client, own[i])
	}
	if len(own) > 0 {
		return nil
	}
	return lend(ctx, client, subnet, publicIP)
}

func lend(ctx context.Context, client *clientv3.Client, subnet netip.Prefix, publicIP netip.Addr) error {
	granted, err := client.Grant(ctx, leaseSeconds)
	if err == nil {
		_, err = client.Put(ctx, LeaseKey(subnet), fmt.Sprintf(`{"PublicIP":%q}`, publicIP.String()),
			clientv3.WithLease(granted.ID))
	}
	return step.Wrap(err, "lease the subnet %s", subnet)
}

// elsewhere returns the problem that another host, which is gone, still has a lease
// with the address of this one: flanneld would adopt that lease.
func elsewhere(ctx context.Context, client *clientv3.Client, lease hostLease) error {
	found, err := client.Get(ctx, reservationOf(lease.subnet))
	if err != nil {
		return err
	}
	other, name := "another host", "NAME"
	if len(found.Kvs) > 0 {
		name = string(found.Kvs[0].Value)
		other = name
	}
	return &step.Problem{Name: "address-leased", Firm: true,
		Text:   fmt.Sprintf("%s had the address %s and still has the subnet %s", other, lease.host, lease.subnet),
		Remedy: "if that host is gone for good, run `kube-bootstrap forget " + name + "` on a control plane"}
}
