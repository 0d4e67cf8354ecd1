package parts

import (
	"errors"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd/gate"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
)

// Balancer returns the balancer of this host.
func Balancer(h *local.Host, role string) balancer.Balancer {
	settings := local.Balancing(h)
	settings.EtcdPort = etcd.ClientPort
	if role == local.Worker {
		settings.EtcdPort = gate.Port
	}
	return balancer.Balancer{Settings: settings, Files: h.Files, Seeds: seeds(h, role)}
}

// seeds returns the control planes that this host knows without a list. The host that a
// control plane joined by may have left since; this host has an API server of its own then.
func seeds(h *local.Host, role string) []string {
	switch own := h.Config.IPAddress; {
	case role != local.Worker && !h.Config.Join:
		return []string{own}
	case role != local.Worker && etcd.DataOf(h.Files).Exist() && own != h.Config.MasterIP:
		return []string{h.Config.MasterIP, own}
	}
	return []string{h.Config.MasterIP}
}

// ControlPlanes lists the control planes that the balancer of this host knows.
func ControlPlanes(h *local.Host) []balancer.ControlPlane {
	state, _ := balancer.ReadState(h.Files) // empty if it was lost
	return state.ControlPlanes
}

// Several reports whether the cluster has or will have several control
// planes. If the balancer's list was lost, it looks whether the controller
// manager uses leader election.
func Several(h *local.Host) bool {
	state, _ := balancer.ReadState(h.Files)
	if !state.Told {
		return h.Config.Join || controlplane.Electing(h.Files)
	}
	return len(state.ControlPlanes) > 1
}

// Others lists the addresses of the other control planes that have joined.
func Others(h *local.Host) []string {
	state, _ := balancer.ReadState(h.Files)
	all := state.Addresses()
	if !state.Told && h.Config.Join {
		all = append(all, h.Config.MasterIP)
	}
	return slices.DeleteFunc(all, func(ip string) bool { return ip == h.Config.IPAddress })
}

// AnotherServes returns nil if the API server of another control plane is ready,
// as the balancer of this host sees it.
func AnotherServes(h *local.Host) error {
	if slices.ContainsFunc(ControlPlanes(h), func(c balancer.ControlPlane) bool { return c.IP != h.Config.IPAddress && c.APIServer }) {
		return nil
	}
	return errors.New("the API server of no other control plane is ready")
}

// Anywhere returns a node that uses any ready API server, because the API
// server of this host may have stopped.
func Anywhere(h *local.Host, name string) node.Node {
	one := Node(h, controlplane.AdminConf)
	one.Name, one.API = name, AnyServer(h, controlplane.AdminConf)
	return one
}

// AnyServer connects by a kubeconfig of this host to any API server that is ready.
func AnyServer(h *local.Host, kubeconfig string) kube.Connect {
	own := kube.Kubeconfig(kubeconfig)
	return func() (*rest.Config, error) {
		config, err := own()
		if err == nil {
			config.Host = local.BalancedAPI(h)
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
	return PKI(h).UserKubeconfig(u)
}
