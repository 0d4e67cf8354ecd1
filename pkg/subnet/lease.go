// Package subnet reads the subnet that flannel has leased to this host. docker0 and the pods
// have its addresses.
package subnet

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// File is the name of flanneld's file with the lease of its host.
const File = "subnet.env"

// Lease is this host's subnet of the network.
type Lease struct {
	Network netip.Prefix // of the cluster
	Subnet  netip.Prefix // of this host, with the address of its bridge: 10.1.3.1/24
	MTU     int          // of the containers' interfaces
}

// Read reads the lease in flanneld's subnet directory. It returns fs.ErrNotExist if flanneld
// has not written it yet.
func Read(files host.Files, dir string) (Lease, error) {
	path := filepath.Join(dir, File)
	data, err := files.Read(path)
	if err != nil {
		return Lease{}, err
	}
	lease, err := parse(string(data))
	if err != nil {
		return Lease{}, fmt.Errorf("%s: %w", path, err)
	}
	return lease, nil
}

func parse(text string) (Lease, error) {
	values, err := parseEnv(text)
	if err != nil {
		return Lease{}, err
	}
	var l Lease
	if l.Network, err = netip.ParsePrefix(values["FLANNEL_NETWORK"]); err != nil {
		return Lease{}, fmt.Errorf("FLANNEL_NETWORK: %w", err)
	}
	if l.Subnet, err = netip.ParsePrefix(values["FLANNEL_SUBNET"]); err != nil {
		return Lease{}, fmt.Errorf("FLANNEL_SUBNET: %w", err)
	}
	if l.MTU, err = strconv.Atoi(values["FLANNEL_MTU"]); err != nil {
		return Lease{}, fmt.Errorf("FLANNEL_MTU: %w", err)
	}
	if _, err = strconv.ParseBool(values["FLANNEL_IPMASQ"]); err != nil {
		return Lease{}, fmt.Errorf("FLANNEL_IPMASQ: %w", err)
	}
	return l, l.validate()
}

// parseEnv parses KEY=VALUE lines. Other lines and duplicate keys are damages.
func parseEnv(text string) (map[string]string, error) {
	values := map[string]string{}
	if !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("the last line is truncated")
	}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || !strings.HasPrefix(key, "FLANNEL_") {
			return nil, fmt.Errorf("not a FLANNEL_ setting: %q", line)
		}
		if _, twice := values[key]; twice {
			return nil, fmt.Errorf("%s occurs twice", key)
		}
		values[key] = value
	}
	return values, nil
}

func (l Lease) validate() error {
	switch {
	case !l.Network.Addr().Is4() || l.Network != l.Network.Masked():
		return fmt.Errorf("FLANNEL_NETWORK %s is not an IPv4 network", l.Network)
	case !l.Subnet.Addr().Is4() || l.Subnet.Bits() > 30:
		return fmt.Errorf("FLANNEL_SUBNET %s is not an IPv4 network with addresses for containers", l.Subnet)
	case l.Subnet.Bits() <= l.Network.Bits() || !l.Network.Contains(l.Subnet.Addr()):
		return fmt.Errorf("FLANNEL_SUBNET %s is not a part of FLANNEL_NETWORK %s", l.Subnet, l.Network)
	case l.Subnet.Addr() != l.Subnet.Masked().Addr().Next():
		return fmt.Errorf("FLANNEL_SUBNET %s is not the first address of its network", l.Subnet)
	case l.MTU < 68 || l.MTU > 65535:
		return fmt.Errorf("FLANNEL_MTU %d is not a valid MTU of IPv4", l.MTU)
	}
	return nil
}
