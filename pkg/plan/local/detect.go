package local

import (
	"cmp"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
)

// place are the names of the settings that are detected on the host if they are not set.
var place = []string{"hostName", "netInterface", "ipAddress"}

// detect sets the missing settings of place.
func detect(h *Host) (err error) {
	for _, name := range place {
		if s, _ := config.Find(name); s.Get(h.Config) == "" {
			h.detected = append(h.detected, name)
		}
	}
	if h.Config.HostName == "" {
		if h.Config.HostName, err = host.HostName(); err != nil {
			return err
		}
	}
	detectAddress(h)
	return nil
}

// Portable returns the settings to save on a host that only has images: without what was detected,
// because the host may be renamed, or its disk copied to other hosts, before it joins a cluster.
func Portable(h *Host) config.Config {
	return h.Config.Reset(h.detected...)
}

// Transferable returns the settings that remain valid if this host gets another name or address,
// or joins another cluster. It resets the others to their defaults.
func Transferable(cfg config.Config) config.Config {
	return cfg.Saved().Reset(place...)
}

// detectAddress acts if the address is not set, or the user sets another interface.
func detectAddress(h *Host) {
	another := h.Given["netInterface"].Source > config.FromHost && h.Given["ipAddress"].Source <= config.FromHost
	moved := another && !h.KeepsAddress()
	if h.Config.IPAddress.IsValid() && !moved {
		return
	}
	link, ok, err := link(h)
	switch {
	case err != nil:
		h.DetectErr = err
	case !ok || len(link.Addrs) == 0:
		h.DetectErr = fmt.Errorf("interface %s has no IPv4 address", cmp.Or(link.Name, h.Config.NetInterface))
	default:
		h.Config.NetInterface = link.Name
		h.Config.IPAddress = link.Addrs[0].Addr()
	}
}

func link(h *Host) (links.Link, bool, error) {
	if h.Config.NetInterface != "" {
		return links.Find(h.Config.NetInterface)
	}
	link, err := links.Default()
	return link, err == nil, err
}
