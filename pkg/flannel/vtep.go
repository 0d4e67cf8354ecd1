package flannel

import (
	"fmt"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// vtepVNI is flanneld's default, which the network's description does not change.
const vtepVNI = 1

// vtepMAC derives the MAC address of a host's vxlan link from the address by
// which the other hosts reach it, so that it is the same after each reboot:
// otherwise the other hosts could not reach this one until etcd has told them
// the new address. The first byte marks it as locally administered.
func vtepMAC(publicIP string) string {
	addr, err := netip.ParseAddr(publicIP)
	if err != nil || !addr.Is4() {
		return ""
	}
	ip := addr.As4()
	return fmt.Sprintf("0a:4b:%02x:%02x:%02x:%02x", ip[0], ip[1], ip[2], ip[3])
}

// MakeLink makes the vxlan link before flanneld does, which would give it a
// random MAC address. flanneld takes the link as it is. It needs etcd first:
// whoever leads to etcd at boot must call MakeLink before. Nothing is made for
// other backends, or while no interface has this host's address.
func (d Daemon) MakeLink() error {
	mac := vtepMAC(d.PublicIP)
	if d.Backend != "vxlan" || mac == "" {
		return nil
	}
	return host.AddVxlan(host.Vxlan{Name: Link(d.Backend), ID: vtepVNI, Local: netip.MustParseAddr(d.PublicIP), MAC: mac})
}

// keepMAC gives the link its MAC address back, which somebody has changed, or
// flanneld chosen when it made the link itself.
func (d Daemon) keepMAC() error {
	name, mac := Link(d.Backend), vtepMAC(d.PublicIP)
	link, ok, err := host.FindLink(name)
	if d.Backend != "vxlan" || mac == "" || err != nil || !ok || link.MAC == mac {
		return err
	}
	return host.SetMAC(name, mac)
}
