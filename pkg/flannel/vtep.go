package flannel

import (
	"fmt"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
)

// vtepVNI is flanneld's default VXLAN network identifier.
const vtepVNI = 1

// vtepMAC derives the MAC address of a host's VXLAN link from its public IP.
// The address is then the same after a reboot, so that the other hosts reach
// this host before they learn a new address from etcd. The first byte marks
// it as locally administered.
func vtepMAC(publicIP string) string {
	addr, err := netip.ParseAddr(publicIP)
	if err != nil || !addr.Is4() {
		return ""
	}
	ip := addr.As4()
	return fmt.Sprintf("0a:4b:%02x:%02x:%02x:%02x", ip[0], ip[1], ip[2], ip[3])
}

// VTEP is the end of this host's VXLAN tunnels: the link of the backend vxlan.
type VTEP struct {
	Backend  string
	PublicIP string // of this host
}

// Create creates the VXLAN link before flanneld does, because flanneld
// would give it a random MAC address (0.28.4). flanneld adopts an existing
// link. flanneld needs etcd to create a link, so Create must run before the
// balancer, which forwards its requests to etcd. It does nothing for other
// backends, or if no interface has this host's address.
func (v VTEP) Create() error {
	mac := vtepMAC(v.PublicIP)
	if v.Backend != "vxlan" || mac == "" {
		return nil
	}
	return links.AddVxlan(links.Vxlan{Name: Link(v.Backend), ID: vtepVNI, Local: netip.MustParseAddr(v.PublicIP), MAC: mac})
}

// keepMAC restores the MAC address of the link.
func (v VTEP) keepMAC() error {
	name, mac := Link(v.Backend), vtepMAC(v.PublicIP)
	link, ok, err := links.Find(name)
	if v.Backend != "vxlan" || mac == "" || err != nil || !ok || link.MAC == mac {
		return err
	}
	return links.SetMAC(name, mac)
}
