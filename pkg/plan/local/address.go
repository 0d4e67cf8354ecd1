package local

import (
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
)

// detectAddress detects the address if it is not set, or if the user sets
// another interface.
func (h *Host) detectAddress() {
	moved := h.Given["netInterface"].Source > config.FromHost && h.Given["ipAddress"].Source <= config.FromHost && !h.KeepsAddress()
	if h.Config.IPAddress != "" && !moved {
		return
	}
	link, ok, err := link(h)
	switch {
	case err != nil:
		h.DetectErr = err
	case !ok || len(link.Addrs) == 0:
		h.DetectErr = fmt.Errorf("interface %s has no IPv4 address", h.Config.NetInterface)
	default:
		h.Config.NetInterface = link.Name
		h.Config.IPAddress = link.Addrs[0].Addr().String()
	}
}

func link(h *Host) (links.Link, bool, error) {
	if h.Config.NetInterface != "" {
		return links.Find(h.Config.NetInterface)
	}
	link, err := links.Default()
	return link, err == nil, err
}

// KeepsAddress reports whether the address of this host cannot change. This
// is so on a control plane, because etcd, its certificates and the other
// hosts refer to the address.
func (h *Host) KeepsAddress() bool { return h.Saved.Role == Master }
