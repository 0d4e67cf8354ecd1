package plan

import (
	"context"
	"regexp"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// hostFilter returns the filter of packets between hosts.
func (h *Host) hostFilter(role string) flannel.HostFilter {
	f := flannel.HostFilter{Daemon: h.flanneld(), KubeletPort: 10250, ControlPlanes: controlPlaneAddresses}
	if role == Master {
		f.PeerPort = 2380
	}
	for _, network := range h.Config.TrustedNetworks {
		f.Trusted = append(f.Trusted, mustPrefix(network))
	}
	return f
}

func controlPlaneAddresses(ctx context.Context, client *clientv3.Client) (all []string, err error) {
	list, err := etcd.Listed(ctx, client)
	for _, e := range list {
		all = append(append(all, e.IP), e.Addresses...)
	}
	return all, err
}

// refreshHostFilter updates the addresses of the filter, without the lock of this
// host. The duty of the filter reports errors.
func (r Resident) refreshHostFilter(ctx context.Context) {
	h, err := r.host()
	if err != nil || !h.ownNetwork() {
		return
	}
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	_ = h.hostFilter(h.saved.Role).Refresh(ctx)
}

// dockerBridge matches a bridge that Docker has created for a network.
var dockerBridge = regexp.MustCompile(`^(docker0|br-[0-9a-f]{12})$`)

// addresses returns the IPv4 addresses of this host, other than its own, that
// the kernel may choose for connections to other hosts.
func (h *Host) addresses() (all []string) {
	links, _ := host.Links() // preflight reports errors
	network := mustPrefix(h.Config.FlannelNetwork)
	for _, l := range links {
		for _, a := range l.Addrs {
			ip := a.Addr()
			if l.Up && !dockerBridge.MatchString(l.Name) && ip.IsGlobalUnicast() && !network.Contains(ip) && ip.String() != h.Config.IPAddress {
				all = append(all, ip.String())
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
