// Package flannel sets up the cluster's overlay network: it writes flannel's
// network configuration to etcd, and runs flanneld, which leases a subnet for
// this host.
//
//	etcd /coreos.com/network/config       written once per cluster by Publish
//	etcd /coreos.com/network/subnets/...  one lease per host, 24 h, renewed by flanneld
//	<SubnetDir>/subnet.env                this host's lease, on disk across reboots
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
	SubnetLen int    // prefix length of a host's subnet; 0 is 24
	Backend   string // "vxlan", "host-gw", "wireguard", "ipip" or "udp"; empty is vxlan
	MTU       int    // of the tunnel; 0: flanneld determines it
	// Own is the address of this host, whose own lease does not prevent a change
	// of the network.
	Own netip.Addr
}

// overlayLinks maps a backend to the interfaces that it creates. host-gw creates
// routes only.
var overlayLinks = map[string][]string{
	"vxlan":     {"flannel.1"},
	"host-gw":   nil,
	"wireguard": {"flannel-wg", "flannel-wg-v6"},
	"ipip":      {"flannel.ipip"},
	"udp":       {"flannel0"},
}

// Link returns the interface by which packets of a backend arrive, or "" for
// host-gw, which uses the host's interface.
func Link(backend string) string {
	if names := overlayLinks[backend]; len(names) > 0 {
		return names[0]
	}
	return ""
}

// Validate returns a problem if flanneld would refuse the network or fail
// with it later.
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

// validateSize applies flanneld's rule: the network must have four subnets,
// of which it never uses the first.
func (n Network) validateSize() error {
	length := n.subnetLen()
	if length > 30 {
		return &step.Problem{Name: "flannel-subnet-length", Text: fmt.Sprintf("a /%d for each host has no addresses for containers", length),
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
	if _, ok := overlayLinks[backend]; !ok {
		return &step.Problem{Name: "flannel-backend", Text: fmt.Sprintf("flannelBackend: %q does not exist", backend),
			Remedy: "choose one of " + strings.Join(slices.Sorted(maps.Keys(overlayLinks)), ", ")}
	}
	if backend == "udp" && arch != "amd64" {
		return &step.Problem{Name: "flannel-backend-arch", Text: "flannel's udp backend exists for amd64 only, and this host is " + arch,
			Remedy: "choose vxlan"}
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

// networkConfig is the JSON value at /coreos.com/network/config.
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
		panic(err) // impossible: strings and numbers only
	}
	return string(data)
}
