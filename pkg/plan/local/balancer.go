package local

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
)

// Balancing returns the settings of the balancer.
func Balancing(h *Host) balancer.Settings {
	return balancer.Settings{
		Own: h.Config.IPAddress, Port: h.Config.BalancerPort, APIPort: h.Config.APIServerPort,
		ClusterCA: join.ClusterCAFile, EtcdCA: join.EtcdCAFile, Cert: join.FlannelCertFile, Key: join.FlannelKeyFile,
	}
}

// BalancedAPI returns the URL at which this host reaches a ready API server.
func BalancedAPI(h *Host) string { return "https://" + Balancing(h).Address() }

// BalancedEtcd returns the URL at which this host reaches an etcd.
func BalancedEtcd(h *Host) string { return "https://" + Balancing(h).EtcdAddress() }
