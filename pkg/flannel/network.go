// Package flannel sets up the cluster's overlay network: it writes flannel's network
// configuration to etcd, and runs flanneld, which leases a subnet for this host.
//
//	etcd /coreos.com/network/config       written once per cluster by Publish
//	etcd /coreos.com/network/subnets/...  one lease per host, 24 h, renewed by flanneld
//	<SubnetDir>/subnet.env                this host's lease, on disk across reboots
package flannel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// subnetLen is the prefix length of a host's subnet.
const subnetLen = 24

// NetworkConfig is the cluster's container network.
type NetworkConfig struct {
	CIDR    netip.Prefix
	Backend string // "vxlan", "host-gw", "wireguard", "ipip" or "udp"; empty is vxlan

	// Own is the address of this host, whose lease does not prevent another network.
	Own netip.Addr
}

// overlayLinks maps a backend to the interfaces that it creates.
var overlayLinks = map[string][]string{
	"vxlan":     {"flannel.1"},
	"host-gw":   nil,
	"wireguard": {"flannel-wg", "flannel-wg-v6"},
	"ipip":      {"flannel.ipip"},
	"udp":       {"flannel0"},
}

// allLinks are the interfaces of all backends.
var allLinks = slices.Concat(slices.Collect(maps.Values(overlayLinks))...)

// Link returns the interface by which packets of a backend arrive, or "" for
// host-gw, which uses the host's interface.
func Link(backend string) string {
	if names := overlayLinks[backend]; len(names) > 0 {
		return names[0]
	}
	return ""
}

// Validate returns a problem if flanneld would refuse the network, or fail later.
func (n NetworkConfig) Validate() error {
	if !n.CIDR.IsValid() || !n.CIDR.Addr().Is4() || n.CIDR != n.CIDR.Masked() {
		return &step.Problem{Name: "flannel-network",
			Text:   fmt.Sprintf("the flannel network %q is not an IPv4 network", n.CIDR),
			Remedy: "write it as 10.1.0.0/16, with zeros after the prefix"}
	}
	// flanneld requires four subnets, and never uses the first.
	// https://github.com/flannel-io/flannel/blob/v0.28.10/pkg/subnet/config.go#L87-L116
	if n.CIDR.Bits() > subnetLen-2 {
		return &step.Problem{Name: "flannel-network-size",
			Text:   fmt.Sprintf("the flannel network %s is too small for a /%d per host", n.CIDR, subnetLen),
			Remedy: fmt.Sprintf("choose a /%d or larger", subnetLen-2)}
	}
	return validateBackend(n.backend(), runtime.GOARCH)
}

func validateBackend(backend, arch string) error {
	if _, ok := overlayLinks[backend]; !ok {
		return &step.Problem{Name: "flannel-backend", Text: fmt.Sprintf("flannelBackend: %q does not exist", backend),
			Remedy: "choose one of " + strings.Join(slices.Sorted(maps.Keys(overlayLinks)), ", ")}
	}
	if backend == "udp" && arch != "amd64" {
		return &step.Problem{Name: "flannel-backend-arch",
			Text:   "flannel's udp backend exists for amd64 only, and this host is " + arch,
			Remedy: "choose vxlan"}
	}
	return nil
}

func (n NetworkConfig) backend() string { return cmp.Or(n.Backend, "vxlan") }

// networkConfig is the JSON value at /coreos.com/network/config.
type networkConfig struct {
	Network   string
	SubnetLen int
	Backend   struct {
		Type string
		MTU  int `json:",omitempty"` // never written: flanneld determines it
	}
}

func (n NetworkConfig) config() networkConfig {
	c := networkConfig{Network: n.CIDR.String(), SubnetLen: subnetLen}
	c.Backend.Type = n.backend()
	return c
}

func (n NetworkConfig) json() string {
	data, err := json.Marshal(n.config())
	if err != nil {
		panic(err) // impossible: strings and numbers only
	}
	return string(data)
}

const (
	prefix     = "/coreos.com/network"
	configKey  = prefix + "/config"
	subnetsKey = LeasesPrefix

	// LeasesPrefix is the prefix of the leases of all hosts.
	LeasesPrefix = prefix + "/subnets/"
)

// EtcdClient is the etcd that stores the network configuration.
type EtcdClient interface {
	// Change calls do with a client, and again as long as etcd answers that it was too slow.
	Change(ctx context.Context, do func(*clientv3.Client) error) error
	// Query calls ask, or returns new if etcd has never run on this host.
	Query(ctx context.Context, new step.Diff,
		ask func(context.Context, *clientv3.Client) (step.Diff, error)) (step.Diff, error)
}

// Publish is the step that writes the network configuration to etcd. It
// replaces another configuration only if no other host has a lease.
func (n NetworkConfig) Publish(etcd EtcdClient) step.Step {
	return step.Step{
		ID: "flannel-network", Name: "write the flannel network config",
		Check: func(ctx context.Context) (step.Diff, error) { return n.check(ctx, etcd) },
		Apply: func(ctx context.Context) error { return n.apply(ctx, etcd) },
	}
}

func (n NetworkConfig) check(ctx context.Context, etcd EtcdClient) (step.Diff, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	all := step.Diff{"write " + configKey + ": " + n.json()}
	return etcd.Query(ctx, all, func(ctx context.Context, client *clientv3.Client) (step.Diff, error) {
		now, err := published(ctx, client)
		switch {
		case err != nil:
			return nil, err
		case now == "":
			return all, nil
		case n.same(now):
			return nil, nil
		}
		return step.Diff{"replace " + configKey + ": " + now + " by " + n.json()}, n.free(ctx, client, now)
	})
}

// apply gives each request the limit of the step, because etcd may be slow.
func (n NetworkConfig) apply(ctx context.Context, etcd EtcdClient) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	return etcd.Change(ctx, func(client *clientv3.Client) error {
		now, err := published(ctx, client)
		if err != nil || n.same(now) {
			return err
		}
		if err := n.free(ctx, client, now); err != nil {
			return err
		}
		_, err = client.Put(ctx, configKey, n.json())
		return err
	})
}

func published(ctx context.Context, client *clientv3.Client) (string, error) {
	found, err := client.Get(ctx, configKey)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", configKey, err)
	}
	if len(found.Kvs) == 0 {
		return "", nil
	}
	return string(found.Kvs[0].Value), nil
}

func (n NetworkConfig) same(text string) bool {
	var now networkConfig
	return json.Unmarshal([]byte(text), &now) == nil && now == n.config()
}

// free returns a problem if another host has a lease of the current configuration: its
// containers would keep addresses that the cluster no longer routes.
func (n NetworkConfig) free(ctx context.Context, client *clientv3.Client, now string) error {
	if now == "" {
		return nil
	}
	leases, err := client.Get(ctx, subnetsKey, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("read %s: %w", subnetsKey, err)
	}
	for _, kv := range leases.Kvs {
		var lease struct{ PublicIP string }
		_ = json.Unmarshal(kv.Value, &lease) // without an address: the lease of an unknown host
		if n.Own.IsValid() && lease.PublicIP == n.Own.String() {
			continue
		}
		return &step.Problem{
			Name: "flannel-network-in-use",
			Text: fmt.Sprintf("host %s has a subnet under another flannel network, %s, and this one is %s",
				lease.PublicIP, now, n.json()),
			Remedy: "use the current network, or run `kube-bootstrap turndown` on the other hosts first",
		}
	}
	return nil
}
