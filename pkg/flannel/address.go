package flannel

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// addressKey is the prefix of one key per address of a host: the address, with the
// host's name as its value. An address belongs to the first host that leases a subnet
// with it, until this host leaves: otherwise a host could take the packets of another.
const addressKey = prefix + "/addresses/"

// Accept returns an error unless a host may write this lease, and notes its address.
// A control plane calls it for every lease that a worker writes. controlPlanes are the
// addresses of all control planes.
func Accept(
	ctx context.Context, client *clientv3.Client, host, key string, value []byte, controlPlanes []string,
) error {
	if len(value) > longestValue {
		return fmt.Errorf("the lease has %d bytes, and more than %d are refused", len(value), longestValue)
	}
	wanted, err := parseHostLease(key, value)
	if err == nil {
		err = wanted.routable()
	}
	if err != nil {
		return err
	}
	subnet, err := Reserved(ctx, client, host)
	if err != nil {
		return err
	}
	if wanted.subnet != subnet {
		return fmt.Errorf("the subnet %s is not reserved for %s", wanted.subnet, host)
	}
	return claimAddress(ctx, client, host, wanted, controlPlanes)
}

// routable returns an error if other hosts cannot route to the host of a lease. With host-gw, that
// host is a gateway, which must be in a network of the other hosts. They would restart flanneld
// again and again because it does not set the route.
func (l hostLease) routable() error {
	if l.backend != "host-gw" {
		return nil
	}
	_, via, exists, err := links.Names{}.RouteTo(l.host)
	if err == nil && (!exists || via.IsValid()) {
		err = fmt.Errorf("PublicIP: %s is in no network of this control plane, and the backend host-gw needs all "+
			"hosts in one network", l.host)
	}
	return err
}

// longestValue is larger than any lease of flanneld, in bytes.
const longestValue = 1 << 10

// claimAddress notes the address of a lease, unless it belongs to another host.
func claimAddress(
	ctx context.Context, client *clientv3.Client, host string, wanted hostLease, controlPlanes []string,
) error {
	foreign := wanted.foreign()
	if slices.Contains(controlPlanes, wanted.host.String()) {
		return foreign
	}
	all, err := leases(ctx, client) // hosts that joined before addresses were noted
	if err != nil {
		return err
	}
	if err := wanted.conflict(all); err != nil {
		return err
	}
	key := addressKey + wanted.host.String()
	missing := clientv3.Compare(clientv3.Version(key), "=", 0)
	noted, err := client.Txn(ctx).If(missing).Then(clientv3.OpPut(key, host)).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return fmt.Errorf("note the address of %s: %w", host, err)
	}
	if noted.Succeeded {
		return forgetAddresses(ctx, client, host, wanted.host)
	}
	if kvs := noted.Responses[0].GetResponseRange().Kvs; len(kvs) != 1 || string(kvs[0].Value) != host {
		return foreign
	}
	return nil
}

func (l hostLease) foreign() error {
	return fmt.Errorf("PublicIP: %s is the address of another host", l.host)
}

// conflict returns an error if another host has the address or the WireGuard key of a lease.
// flanneld has one WireGuard peer for each key. If two leases have the same key, the second subnet
// replaces the first one.
// https://github.com/flannel-io/flannel/blob/v0.28.10/pkg/backend/wireguard/device.go#L301
func (l hostLease) conflict(all []hostLease) error {
	for _, other := range all {
		switch {
		case other.subnet == l.subnet:
		case other.host == l.host:
			return l.foreign()
		case l.wgKey != "" && other.wgKey == l.wgKey:
			return fmt.Errorf("PublicKey: %s is the key of another host", l.wgKey)
		}
	}
	return nil
}

// forgetAddresses releases the addresses of a host, except one.
func forgetAddresses(ctx context.Context, client *clientv3.Client, host string, except netip.Addr) error {
	noted, err := client.Get(ctx, addressKey, clientv3.WithPrefix())
	if err != nil {
		return step.Wrap(err, "read %s", addressKey)
	}
	for _, kv := range noted.Kvs {
		if string(kv.Value) != host || string(kv.Key) == addressKey+except.String() {
			continue
		}
		if _, deleteErr := client.Delete(ctx, string(kv.Key)); deleteErr != nil {
			err = errors.Join(err, step.Wrap(deleteErr, "release the address of %s", host))
		}
	}
	return err
}
