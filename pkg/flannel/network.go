// Package flannel gives this host its share of the cluster's network: the
// network's description in etcd, and flanneld, which leases a subnet of it.
//
//	etcd /coreos.com/network/config       what Publish writes, once for the cluster
//	etcd /coreos.com/network/subnets/...  one lease a host, 24 h, renewed by flanneld
//	<SubnetDir>/subnet.env                this host's lease, on disk: kept across reboots
package flannel

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const defaultSubnetLen = 24

// Network is the cluster's container network.
type Network struct {
	CIDR      netip.Prefix
	SubnetLen int    // of one host's share; 0 is 24
	Backend   string // "vxlan", "host-gw", "wireguard", "ipip" or "udp"; empty is vxlan
	MTU       int    // of the tunnel; 0 lets flanneld find it
	// Own is this host's address: its own lease does not keep the network
	// from being changed.
	Own netip.Addr
}

// links names the interface that each backend makes; host-gw makes routes.
var links = map[string][]string{
	"vxlan":     {"flannel.1"},
	"host-gw":   nil,
	"wireguard": {"flannel-wg", "flannel-wg-v6"},
	"ipip":      {"flannel.ipip"},
	"udp":       {"flannel0"},
}

// Link returns the interface by which a backend's packets arrive; empty for
// host-gw, which uses the host's own.
func Link(backend string) string {
	if names := links[backend]; len(names) > 0 {
		return names[0]
	}
	return ""
}

// Validate tells what flanneld would refuse, or would go wrong with later.
func (n Network) Validate() error {
	if !n.CIDR.IsValid() || !n.CIDR.Addr().Is4() || n.CIDR != n.CIDR.Masked() {
		return &step.Problem{Name: "flannel-network", Text: fmt.Sprintf("the flannel network %q is not an IPv4 network", n.CIDR),
			Remedy: "write it as 10.1.0.0/16, with zeros after the prefix"}
	}
	if err := n.validateSize(); err != nil {
		return err
	}
	return validateBackend(n.backend(), runtime.GOARCH)
}

// validateSize keeps flanneld's rule: room for four subnets, as the first is
// never used.
func (n Network) validateSize() error {
	length := n.subnetLen()
	if length > 30 {
		return &step.Problem{Name: "flannel-subnet-length", Text: fmt.Sprintf("a /%d for each host leaves no room for containers", length),
			Remedy: "choose 30 or less"}
	}
	if n.CIDR.Bits()+2 > length {
		return &step.Problem{Name: "flannel-network-size",
			Text:   fmt.Sprintf("the flannel network %s is too small for a /%d per host", n.CIDR, length),
			Remedy: fmt.Sprintf("choose a /%d or larger", max(length-2, 0))}
	}
	return nil
}

func validateBackend(backend, arch string) error {
	if _, ok := links[backend]; !ok {
		return &step.Problem{Name: "flannel-backend", Text: fmt.Sprintf("there is no flannel backend %q", backend),
			Remedy: "choose one of " + strings.Join(slices.Sorted(maps.Keys(links)), ", ")}
	}
	if backend == "udp" && arch != "amd64" {
		return &step.Problem{Name: "flannel-backend-arch", Text: "flannel's udp backend exists for amd64 only, and this host is " + arch,
			Remedy: "choose vxlan, which every kernel of today has"}
	}
	return nil
}

func (n Network) backend() string {
	if n.Backend == "" {
		return "vxlan"
	}
	return n.Backend
}

func (n Network) subnetLen() int {
	if n.SubnetLen == 0 {
		return defaultSubnetLen
	}
	return n.SubnetLen
}

// networkConfig is the value at /coreos.com/network/config, in flannel's words.
type networkConfig struct {
	Network   string
	SubnetLen int
	Backend   backendConfig
}

type backendConfig struct {
	Type string
	MTU  int `json:",omitempty"`
}

func (n Network) config() networkConfig {
	c := networkConfig{Network: n.CIDR.String(), SubnetLen: n.subnetLen(), Backend: backendConfig{Type: n.backend()}}
	if n.backend() == "vxlan" || n.backend() == "wireguard" {
		c.Backend.MTU = n.MTU
	}
	return c
}

func (n Network) json() string {
	data, err := json.Marshal(n.config())
	if err != nil {
		panic(err) // strings and numbers only
	}
	return string(data)
}
