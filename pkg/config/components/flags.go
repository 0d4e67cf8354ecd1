// Package components checks the flags and the configurations that users give to
// components of Kubernetes and to etcd. It refuses the parts that make a component
// a part of the cluster, or safe.
package components

import (
	"slices"
	"strings"
)

// Reasons why a flag cannot be set.
const (
	stays           = "it stays as it is, because the cluster depends on it"
	ownCertificates = "the certificates are those of kube-bootstrap; it also sets the ciphers and the oldest version of TLS"
	ownRights       = "who may do what is decided as kube-bootstrap sets it"
	ownAddress      = "use ipAddress"
	ownEtcd         = "the API server uses the etcd of the control planes"
	onlyPrints      = "it only prints, and ends"
)

// keptByKubernetes are flags of several components of Kubernetes. A name that ends in * stands
// for all flags that begin with it.
var keptByKubernetes = map[string]string{
	"help": onlyPrints, "version": onlyPrints, "feature-gates": "use featureGates", "kubeconfig": stays, "master": stays, "config": "use the flags",
	"tls-*": ownCertificates, "cert-dir": ownCertificates, "client-ca-file": ownCertificates, "requestheader-*": ownCertificates,
	"authentication-*": ownRights, "authorization-*": ownRights, "anonymous-auth": ownRights,
	"bind-address": stays, "secure-port": stays, "permit-*": stays, "leader-elect": "it follows the number of control planes",
}

// keptFlags are flags that make a component a part of this cluster, or safe;
// each with the setting to use instead, or with the reason.
var keptFlags = map[string]map[string]string{
	"kube-apiserver": {
		"advertise-address": ownAddress, "secure-port": "use apiServerPort", "service-cluster-ip-range": "use serviceNetwork",
		"oidc-*": "use oidc", "audit-policy-file": "use auditPolicyFile", "admission-control": "use enable-admission-plugins",
		"allow-privileged": stays, "enable-bootstrap-token-auth": "hosts join with tokens", "token-auth-file": "use `kube-bootstrap kubeconfig --user`",
		"admission-control-config-file": "it limits events and sets the defaults of Pod Security",
		"encryption-provider-*":         "Secrets are encrypted with the key of the cluster",
		"etcd-servers":                  ownEtcd, "etcd-cafile": ownEtcd, "etcd-certfile": ownEtcd, "etcd-keyfile": ownEtcd, "etcd-prefix": ownEtcd,
		"kubelet-certificate-authority": ownCertificates, "kubelet-client-*": ownCertificates, "proxy-client-*": ownCertificates,
		"service-account-issuer": "it follows dnsDomain", "service-account-jwks-uri": "it follows dnsDomain",
		"service-account-key-file": ownCertificates, "service-account-signing-*": ownCertificates, "service-account-lookup": stays,
		"audit-log-path": "the log is in /var/log/kubernetes/audit", "storage-backend": ownEtcd,
	},
	"kube-controller-manager": {
		"allocate-node-cidrs": "use cniPlugin", "cluster-cidr": "use flannelNetwork", "service-cluster-ip-range": "use serviceNetwork",
		"root-ca-file": ownCertificates, "service-account-private-key-file": ownCertificates, "use-service-account-credentials": ownRights,
		"cluster-signing-cert-file": ownCertificates, "cluster-signing-key-file": ownCertificates, "cluster-signing-kube*": ownCertificates,
		"cluster-signing-legacy-*": ownCertificates,
	},
	"kube-scheduler": {"write-config-to": onlyPrints},
	"kubelet": {
		"bootstrap-kubeconfig": stays, "config-dir": "use kubeletConfig", "hostname-override": "use hostName", "node-ip": ownAddress, "address": stays,
		"node-labels": "use nodeLabels", "register-with-taints": "use nodeTaints", "register-node": stays, "container-runtime-endpoint": "use criSocket",
		"cluster-dns": "use dnsServerIP", "cluster-domain": "use dnsDomain", "cgroup-driver": "it follows the container runtime", "port": stays,
		"pod-manifest-path": stays, "read-only-port": "it stays closed", "root-dir": stays, "rotate-*": ownCertificates, "system-reserved": "use nodeCPUs, nodeMemory and nodeDisk",
		"manifest-url*": stays,
	},
	"etcd": {
		"name": "use hostName", "data-dir": stays, "wal-dir": stays, "listen-*": ownAddress, "advertise-*": ownAddress, "initial-*": stays,
		"discovery*": stays, "force-new-cluster": stays, "strict-reconfig-check": stays,
		"unsafe-*": "a power failure would damage the data", "enable-pprof": stays, "auth-token*": ownRights,
		"cert-file": ownCertificates, "key-file": ownCertificates, "trusted-ca-file": ownCertificates, "client-*": ownCertificates,
		"peer-*": ownCertificates, "auto-tls": ownCertificates, "cipher-suites": ownCertificates, "self-signed-*": ownCertificates,
		"tls-*": ownCertificates, "host-whitelist": ownRights, "cors": ownRights,
	},
}

// Flag returns why a flag cannot be set, with the setting to use instead.
func Flag(program, name, value string) string {
	tables := []map[string]string{keptFlags[program]}
	if program != "etcd" {
		tables = append(tables, keptByKubernetes)
	}
	for _, kept := range tables {
		for form, remedy := range kept {
			prefix, isPrefix := strings.CutSuffix(form, "*")
			if name == form || isPrefix && strings.HasPrefix(name, prefix) {
				return "cannot be set here: " + remedy
			}
		}
	}
	if name == "disable-admission-plugins" && slices.Contains(strings.Split(value, ","), "NodeRestriction") {
		return "cannot contain NodeRestriction: it keeps a node from changing other nodes"
	}
	return ""
}
