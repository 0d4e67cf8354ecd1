package parts

import (
	"errors"
	"net"
	"slices"
	"strconv"

	"k8s.io/client-go/rest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd/gate"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// newBalancer returns the balancer of this host.
func newBalancer(h *local.Host, role string) balancer.Balancer {
	settings := local.Balancing(h)
	settings.EtcdPort = etcd.ClientPort
	first, data := addresses.Text(h.Config.MasterIP), etcd.DataOf(h.Files)
	if role == local.Worker {
		settings.EtcdPort, settings.First = gate.Port, first
	}
	return balancer.Balancer{
		Settings: settings, Files: h.Files, Seeds: seeds(role, h.IP(), first, h.Config.Join, data),
	}
}

// seeds returns the control planes that this host knows without a list. The host that a
// control plane joined by may have left since; this host has an API server of its own then.
func seeds(role, own, first string, joins bool, data etcd.Data) []string {
	switch {
	case role != local.Worker && !joins:
		return []string{own}
	case role != local.Worker && data.Exist() && own != first:
		return []string{first, own}
	default:
		return []string{first}
	}
}

// ControlPlanes lists the control planes that the balancer of this host knows.
func ControlPlanes(files host.Files) []balancer.Backend {
	state, _ := balancer.ReadBackends(files) // empty if it was lost
	return state.ControlPlanes
}

// Several reports whether the cluster has or will have several control
// planes. If the balancer's list was lost, it looks whether the controller
// manager uses leader election.
func Several(files host.Files, joins bool) bool {
	state, _ := balancer.ReadBackends(files)
	if !state.Known {
		return joins || controlplane.Electing(files)
	}
	return len(state.ControlPlanes) > 1
}

// others lists the addresses of the other control planes that have joined. Without a list of the
// balancer, it is the one by which this host joins.
func others(files host.Files, own, first string) []string {
	state, _ := balancer.ReadBackends(files)
	all := state.Addresses()
	if !state.Known && first != "" {
		all = append(all, first)
	}
	return slices.DeleteFunc(all, func(ip string) bool { return ip == own })
}

// AnotherServes returns nil if the API server of another control plane than that of the address own is
// ready, as the balancer of this host sees it.
func AnotherServes(files host.Files, own string) error {
	ready := func(c balancer.Backend) bool { return c.IP != own && c.APIServer }
	if slices.ContainsFunc(ControlPlanes(files), ready) {
		return nil
	}
	return errors.New("the API server of no other control plane is ready")
}

// ClusterAPI is the API of the cluster by any API server that is ready, because that of this host may
// have stopped.
type ClusterAPI struct{ server string } // "https://127.0.0.1:6440": see local.BalancedAPI

// Node returns a node.
func (c ClusterAPI) Node(name string) node.Node {
	one := ObjectOf(name, controlplane.AdminConf)
	one.API = c.As(controlplane.AdminConf)
	return one
}

// As connects with the identity of a kubeconfig of this host.
func (c ClusterAPI) As(kubeconfig string) kube.Connect {
	own := kube.Kubeconfig(kubeconfig)
	return func() (*rest.Config, error) {
		config, err := own()
		if err == nil {
			config.Host = c.server
		}
		return config, err
	}
}

// UserKubeconfig returns a kubeconfig for a user of this cluster.
func UserKubeconfig(u controlplane.User) ([]byte, error) {
	h, err := local.InForce(host.Files{})
	if err != nil {
		return nil, err
	}
	return InForce(h).ControlPlane.PKI.UserKubeconfig(u)
}

// APIServers returns the API servers of all control planes, each at its own address.
func APIServers(h *local.Host) (all upgrade.Servers) {
	kubeconfig, known := controlplane.AdminConf, ControlPlanes(h.Files)
	if h.Saved.Role == local.Worker {
		kubeconfig = kubelet.Kubeconfig
	}
	for _, c := range known {
		address := net.JoinHostPort(c.IP, strconv.Itoa(h.Config.APIServerPort))
		all = append(all, upgrade.Server{Address: c.IP, API: ClusterAPI{"https://" + address}.As(kubeconfig)})
	}
	return all
}
