package controlplane

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// Where the components find their kubeconfigs.
const (
	managerConf   = Dir + "/controller-manager.conf"
	schedulerConf = Dir + "/scheduler.conf"
)

// component is one program of the control plane.
type component struct {
	name     string
	args     []string
	read     []string // directories and files of the host that it may read
	write    []string // directories of the host that it may write
	host     string   // where its health is asked
	port     int
	live     string // paths of its health
	ready    string
	cpu      string // its request; the API server has the largest, because the others wait for it
	restarts []byte // the pod must restart when this changes
}

func podPath(name string) string { return ManifestDir + "/" + name + ".yaml" }

func (s StaticPods) apiserver(reads []host.File) component {
	restarts := slices.Concat(content(s.Files, accountPublic), content(s.Files, accountKey), trusted(s.Files, EtcdCA), trusted(s.Files, kubeletCA))
	for _, file := range reads {
		restarts = append(restarts, file.Data...)
	}
	return component{
		name: "kube-apiserver", args: s.apiserverArgs(),
		read: []string{PKIDir, ConfigDir}, write: []string{auditDir},
		host: s.IP, port: s.APIPort, live: "/livez", ready: "/readyz", cpu: "150m",
		restarts: restarts,
	}
}

func (s StaticPods) apiserverArgs() []string {
	return []string{
		"--advertise-address=" + s.IP,
		fmt.Sprintf("--secure-port=%d", s.APIPort),
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + s.ServiceCIDR.String(),

		"--authentication-config=" + authenticationFile,
		"--authorization-config=" + authorizationFile,
		"--client-ca-file=" + clusterCA + ".crt",
		"--enable-bootstrap-token-auth=true",
		"--enable-admission-plugins=NodeRestriction,EventRateLimit,DenyServiceExternalIPs",
		"--admission-control-config-file=" + admissionFile,
		"--encryption-provider-config=" + encryptionFile,

		"--tls-cert-file=" + apiserver + ".crt",
		"--tls-private-key-file=" + apiserver + ".key",
		"--tls-min-version=VersionTLS12",
		"--tls-cipher-suites=" + strings.Join(pki.CipherSuites(), ","),
		"--profiling=false",
		// Without it, a terminating API server waits for its watches until it is killed.
		"--shutdown-send-retry-after=true",
		// A terminating API server is not ready at once, and answers until the balancers
		// have noticed, which probe it every second. The remaining time is for TLS
		// handshakes that began before: they take seconds on a busy host.
		"--shutdown-delay-duration=5s",

		"--etcd-servers=" + strings.Join(s.EtcdEndpoints, ","),
		"--etcd-cafile=" + EtcdCA + ".crt",
		"--etcd-certfile=" + EtcdRoot + ".crt",
		"--etcd-keyfile=" + EtcdRoot + ".key",

		"--kubelet-certificate-authority=" + kubeletCA + ".crt",
		"--kubelet-client-certificate=" + kubeletClient + ".crt",
		"--kubelet-client-key=" + kubeletClient + ".key",
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",

		"--requestheader-client-ca-file=" + frontProxyCA + ".crt",
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + frontProxy + ".crt",
		"--proxy-client-key-file=" + frontProxy + ".key",

		"--service-account-issuer=" + s.issuer(),
		"--service-account-jwks-uri=" + s.issuer() + "/openid/v1/jwks",
		"--service-account-key-file=" + accountPublic,
		// Otherwise a pod's token is valid for a year rather than an hour.
		"--service-account-extend-token-expiration=false",
		"--service-account-signing-key-file=" + accountKey,

		"--audit-policy-file=" + auditFile,
		"--audit-log-path=" + auditDir + "/audit.log",
		"--audit-log-maxage=30",
		"--audit-log-maxbackup=10",
		"--audit-log-maxsize=100",
	}
}

// issuer is the issuer of service-account tokens, which pods reach under this name.
func (s StaticPods) issuer() string { return "https://" + serviceName + "." + s.DNSDomain }

func (s StaticPods) manager() component {
	return component{
		name: "kube-controller-manager", args: s.managerArgs(),
		read: []string{PKIDir, managerConf},
		host: "127.0.0.1", port: 10257, live: "/healthz", ready: "/healthz", cpu: "25m",
		restarts: slices.Concat(content(s.Files, managerConf), content(s.Files, accountKey)),
	}
}

func (s StaticPods) managerArgs() []string {
	// Our own flannel, not this, gives each host its part of the pod network.
	cidrs := []string{"--allocate-node-cidrs=false"}
	if s.PodCIDR.IsValid() {
		cidrs = []string{"--allocate-node-cidrs=true", "--cluster-cidr=" + s.PodCIDR.String()}
	}
	args := slices.Concat(s.clientArgs(managerConf), cidrs, signingArgs())
	if s.LeafLife != 0 { // otherwise a year, as the other certificates
		args = append(args, "--cluster-signing-duration="+s.LeafLife.String())
	}
	return append(args,
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--use-service-account-credentials=true",
		"--terminated-pod-gc-threshold=1000",
		"--root-ca-file="+clusterCA+".crt",
		"--service-account-private-key-file="+accountKey,
		"--client-ca-file="+clusterCA+".crt",
		"--requestheader-client-ca-file="+frontProxyCA+".crt",
	)
}

// signingArgs sets the CA for each signer. Kubelet serving certificates have a
// CA of their own, so that none of them is valid for the API server, whatever
// names it contains.
func signingArgs() (args []string) {
	for _, s := range []struct{ signer, authority string }{
		{"kubelet-serving", kubeletCA},
		{"kubelet-client", clusterCA},
		{"kube-apiserver-client", clusterCA},
		{"legacy-unknown", clusterCA},
	} {
		args = append(args,
			"--cluster-signing-"+s.signer+"-cert-file="+signingFile(s.authority),
			"--cluster-signing-"+s.signer+"-key-file="+s.authority+".key")
	}
	return args
}

func (s StaticPods) scheduler() component {
	return component{
		name: "kube-scheduler", args: s.clientArgs(schedulerConf),
		read: []string{schedulerConf},
		host: "127.0.0.1", port: 10259, live: "/livez", ready: "/readyz", cpu: "25m",
		restarts: content(s.Files, schedulerConf),
	}
}

// clientArgs are what controller manager and scheduler have in common. At the
// default rate of requests a fresh cluster takes seconds longer.
func (s StaticPods) clientArgs(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--tls-min-version=VersionTLS12",
		fmt.Sprintf("--leader-elect=%t", !s.Single),
		"--kube-api-qps=100",
		"--kube-api-burst=200",
		"--profiling=false",
	}
}

// trusted returns the certificates in the file of an authority, sorted. The API
// server must not restart when only the signer changes.
func trusted(files host.Files, path string) []byte {
	certs := blocks(content(files, path+".crt"))
	slices.Sort(certs)
	return []byte(strings.Join(certs, ""))
}

// content returns a file that an earlier step wrote; nil before that.
func content(files host.Files, path string) []byte {
	data, _ := files.Read(path)
	return data
}
