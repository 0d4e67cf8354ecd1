package controlplane

import (
	"path/filepath"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// purposes says in a line of a table what each certificate is for.
var purposes = map[string]string{
	clusterCA:      "signs the certificates of the API server and of its clients",
	frontProxyCA:   "signs the client certificate that the API server shows to extension API servers",
	kubeletCA:      "signs the serving certificates of kubelets",
	EtcdCA:         "signs etcd's serving certificates and those of its clients",
	EtcdPeerCA:     "signs the certificates that members of etcd show to one another",
	apiserver:      "the API server serves with it",
	kubeletClient:  "the API server shows it to kubelets",
	frontProxy:     "the API server shows it to extension API servers",
	EtcdServer:     "etcd serves with it",
	EtcdPeer:       "etcd shows it to other members",
	EtcdRoot:       "the API server shows it to etcd",
	FlannelClient:  "flanneld and the agent show it to etcd",
	AdminConf:      "administrators",
	SuperAdminConf: "administrators, with rights that RBAC cannot take away",
	AgentConf:      "the agent",
	managerConf:    "the controller manager",
	schedulerConf:  "the scheduler",
}

// Held lists the certificates of a control plane.
func Held() []pki.Held {
	const remedy = "run `kube-bootstrap certs renew`, or `kube-bootstrap master` if one has expired"
	var all []pki.Held
	for _, a := range authorities {
		all = append(all, pki.Held{Name: certificateName(a.path), Path: a.path + ".crt", Purpose: purposes[a.path], Remedy: pki.RotateAuthorities})
	}
	for _, l := range (PKI{}).leaves() {
		all = append(all, pki.Held{
			Name: certificateName(l.path), Path: l.name(), Purpose: purposes[l.path],
			RenewedBy: "agent", Remedy: remedy, Optional: l.path == SuperAdminConf,
		})
	}
	return all
}

// certificateName returns the name that users give to a certificate:
// "etcd-server" for /etc/kubernetes/pki/etcd/server, "admin.conf" for
// /etc/kubernetes/admin.conf.
func certificateName(path string) string {
	if name, ok := strings.CutPrefix(path, PKIDir+"/"); ok {
		return strings.ReplaceAll(name, "/", "-")
	}
	return filepath.Base(path)
}
