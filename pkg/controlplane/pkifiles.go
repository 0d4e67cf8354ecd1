package controlplane

import (
	"path/filepath"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// Pairs of files that others read: these plus ".crt" and ".key".
const (
	ClusterCA     = PKIDir + "/ca"
	EtcdCA        = PKIDir + "/etcd/ca"
	EtcdPeerCA    = PKIDir + "/etcd/peer-ca" // trusted by control planes only: see PeerName
	EtcdServer    = PKIDir + "/etcd/server"
	EtcdPeer      = PKIDir + "/etcd/peer"
	EtcdRoot      = PKIDir + "/apiserver-etcd-client" // CN root: the API server, and our own requests to etcd
	FlannelClient = PKIDir + "/etcd/flannel"          // of this host's own user, see PKI.EtcdUser

	KubeletCAFile = kubeletCA + ".crt" // trusted for the serving certificates of kubelets

	crossFile     = PKIDir + "/ca-cross.crt" // ClusterCA signed by the previous one; empty before a rotation
	frontProxyCA  = PKIDir + "/front-proxy-ca"
	kubeletCA     = PKIDir + "/kubelet-ca" // signs no certificate that is valid for an API server
	apiserver     = PKIDir + "/apiserver"
	kubeletClient = PKIDir + "/apiserver-kubelet-client"
	frontProxy    = PKIDir + "/front-proxy-client"
	accountKey    = PKIDir + "/sa.key"
	accountPublic = PKIDir + "/sa.pub"

	managerServer   = PKIDir + "/controller-manager/serving"
	schedulerDir    = PKIDir + "/scheduler" // all that the scheduler may read of PKIDir
	schedulerServer = schedulerDir + "/serving"
)

// Dirs lists the directories of a control plane's configuration, each after its parent.
func Dirs() []string {
	return []string{
		Dir, ConfigDir, PKIDir, filepath.Dir(EtcdServer), filepath.Dir(managerServer), schedulerDir, ManifestDir,
	}
}

// PeerName is the common name of every etcd member on the peer port. A client
// of that port can propose a change as etcd's root user: the port authenticates
// by TLS only, and a raft proposal contains the user that it acts for.
// EtcdPeerCA therefore only signs certificates that stay on control planes. etcd trusts
// it on both ports, so that no certificate of a worker opens one of them.
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/apply/auth.go#L46-L53
const PeerName = "etcd-peer"

// KubeletClientUser is whom the API server is to a kubelet.
const KubeletClientUser = "kube-apiserver-kubelet-client"

type authority struct{ path, name, purpose string }

var authorities = []authority{
	{ClusterCA, "kubernetes", "signs the certificates of the API server and of its clients"},
	{frontProxyCA, "front-proxy-ca", "signs the client certificate that the API server shows to extension API servers"},
	{kubeletCA, "kubelet-ca", "signs the serving certificates of kubelets, the controller manager and the scheduler"},
	{EtcdCA, "etcd-ca", "signs the server certificates of etcd, and the client certificates of workers"},
	{EtcdPeerCA, "etcd-peer-ca", "signs the peer certificates of etcd, and the client certificates of control planes"},
}

// signers are the authorities with which the controller manager signs.
var signers = []string{ClusterCA, kubeletCA}

// signingFile returns the path of the certificate with which the controller manager
// signs. It accepts a file with one certificate only, and during a rotation the file
// of the authority contains two.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/controller/certificates/signer/ca_provider.go#L60-L62
func signingFile(path string) string { return path + "-signing.crt" }

// leaf is a certificate that an authority signs, in a pair of files or a kubeconfig.
type leaf struct {
	path, signer, purpose string
	kubeconfig            bool
	request               pki.CertificateRequest
}

func (l leaf) name() string {
	if l.kubeconfig {
		return l.path
	}
	return l.path + ".crt"
}

func (p PKI) leaves() []leaf {
	serving := pki.CertificateRequest{
		CommonName: "kube-apiserver", Hosts: p.apiHosts(), WithAuthority: true, Cross: content(p.Files, crossFile),
	}
	client := func(path, signer, name, purpose string, hosts ...string) leaf {
		return leaf{path, signer, purpose, false, pki.CertificateRequest{CommonName: name, Hosts: hosts, Client: true}}
	}
	conf := func(path, purpose, user string, groups ...string) leaf {
		return leaf{
			path, ClusterCA, purpose, true,
			pki.CertificateRequest{CommonName: user, Organizations: groups, Client: true},
		}
	}
	// Without a certificate, the controller manager and the scheduler make an RSA key at
	// each start, which takes up to seconds on a small board.
	// https://github.com/kubernetes/kubernetes/blob/v1.37.2/cmd/kube-controller-manager/app/options/options.go#L498
	local := func(path, purpose, name string) leaf {
		return leaf{
			path, kubeletCA, purpose, false, pki.CertificateRequest{
				CommonName: name, Hosts: []string{"localhost", "127.0.0.1"},
			},
		}
	}
	etcdHosts := []string{p.HostName, p.IP, "localhost", "127.0.0.1"}
	return []leaf{
		{path: apiserver, signer: ClusterCA, purpose: "the API server serves with it", request: serving},
		client(kubeletClient, ClusterCA, KubeletClientUser, "the API server shows it to kubelets"),
		client(frontProxy, frontProxyCA, "front-proxy-client", "the API server shows it to extension API servers"),
		client(EtcdServer, EtcdCA, p.HostName, "etcd serves with it", etcdHosts...),
		client(EtcdPeer, EtcdPeerCA, PeerName, "etcd shows it to other members", etcdHosts...),
		client(EtcdRoot, EtcdPeerCA, "root", "the API server shows it to etcd"),
		client(FlannelClient, EtcdPeerCA, p.EtcdUser, "flanneld and the agent show it to etcd"),
		local(managerServer, "the controller manager serves with it", "kube-controller-manager"),
		local(schedulerServer, "the scheduler serves with it", "kube-scheduler"),
		conf(SuperAdminConf, "administrators, with rights that RBAC cannot take away", superAdmin, superGroup),
		conf(AdminConf, "administrators", "kubernetes-admin", AdminGroup), // after SuperAdminConf, see removed
		conf(AgentConf, "the agent", "kube-bootstrap-agent", AgentGroup),
		conf(managerConf, "the controller manager", "system:kube-controller-manager"),
		conf(schedulerConf, "the scheduler", "system:kube-scheduler"),
	}
}

// apiHosts lists the names and addresses under which clients reach the API server.
func (p PKI) apiHosts() []string {
	return append([]string{
		p.HostName, "localhost", "kubernetes", "kubernetes.default", serviceName, serviceName + "." + p.DNSDomain,
		p.IP, "127.0.0.1", p.ServiceCIDR.Masked().Addr().Next().String(),
	}, p.ExtraNames...)
}

func certificateFiles() (files []string) {
	for _, file := range SharedFiles() {
		files = append(files, file.Path)
	}
	for _, path := range signers {
		files = append(files, signingFile(path))
	}
	for _, l := range (PKI{}).leaves() {
		files = append(files, l.name())
		if !l.kubeconfig {
			files = append(files, l.path+".key")
		}
	}
	return files
}

// Held lists the certificates of a control plane.
func Held() []pki.CertificateFile {
	const remedy = "run `kube-bootstrap certs renew`, or `kube-bootstrap master` if one has expired"
	var all []pki.CertificateFile
	for _, a := range authorities {
		all = append(all, pki.CertificateFile{
			Name: certificateName(a.path), Path: a.path + ".crt", Purpose: a.purpose, Remedy: pki.RotateAuthorities,
		})
	}
	for _, l := range (PKI{}).leaves() {
		all = append(all, pki.CertificateFile{
			Name: certificateName(l.path), Path: l.name(), Purpose: l.purpose,
			RenewedBy: "agent", Remedy: remedy, Optional: l.path == SuperAdminConf,
		})
	}
	return all
}

// certificateName returns the name that users give to a certificate: "etcd-server"
// for /etc/kubernetes/pki/etcd/server, "admin.conf" for /etc/kubernetes/admin.conf.
func certificateName(path string) string {
	if name, ok := strings.CutPrefix(path, PKIDir+"/"); ok {
		return strings.ReplaceAll(name, "/", "-")
	}
	return filepath.Base(path)
}
