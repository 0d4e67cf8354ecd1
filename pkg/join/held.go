package join

import "github.com/kube-bootstrap/kube-bootstrap/pkg/pki"

// Held lists the certificates that a worker receives when it joins.
func Held() []pki.CertificateFile {
	const again = "run `kube-bootstrap worker`"
	return []pki.CertificateFile{
		{Name: "ca", Path: ClusterCAFile, Purpose: "signs the certificates of the API server and of its clients",
			Remedy: pki.RotateAuthorities},
		{Name: "etcd-ca", Path: EtcdCAFile, Purpose: "signs etcd's serving certificates and those of its clients",
			Remedy: pki.RotateAuthorities},
		{Name: "etcd-flannel", Path: FlannelCertFile, Purpose: "flanneld and the agent show it to etcd",
			RenewedBy: "agent", Remedy: again},
	}
}
