package config

import (
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
)

var (
	// Arches are the supported architectures by their Go names.
	Arches = []string{"amd64", "arm64", "arm", "ppc64le", "s390x"}

	// machineNames translates `uname -m`.
	machineNames = map[string]string{
		"x86_64": "amd64", "aarch64": "arm64", "armv6l": "arm", "armv7l": "arm", "armhf": "arm", "armv8l": "arm",
	}
)

var settings = slices.Concat(clusterSettings, componentSettings, accessSettings, nodeSettings, machineSettings,
	containerSettings, mirrorSettings, downloadSettings, registrySettings)

var clusterSettings = []Setting{{
	Field: "kubernetesVersion", Flag: "kubernetes-version", Group: GroupCluster, Env: "K8S_VERSION",
	Default: catalog.Newest().Patch, Verbs: hosts | Offline | Bootstrap | Push, Shared: true, Change: OnCluster,
	Help: "Kubernetes version to run, " + catalog.Supported(), check: on(kubernetesVersion),
}, {
	Field: "etcdVersion", Flag: "etcd-version", Group: GroupCluster, Env: "ETCD_VERSION",
	Verbs: hosts | Offline | Bootstrap, Shared: true, Change: OnCluster,
	Help: "etcd version to run (empty: that of the Kubernetes version)", check: on(etcdVersion),
}, {
	Field: "flannelVersion", Flag: "flannel-version", Group: GroupCluster, Env: "FLANNEL_VERSION",
	Verbs: hosts | Offline | Bootstrap, Shared: true, Change: OnCluster,
	Help: "flannel version to run (empty: that of the Kubernetes version)", check: on(flannelVersion),
}, {
	Field: "flannelIPMasq", Flag: "flannel-ipmasq", Group: GroupNetwork, Env: "FLANNEL_IPMASQ", Default: "true",
	Verbs: hosts, Shared: true, Change: OnCluster,
	Help: "masquerade packets that leave the flannel network",
}, {
	Field: "flannelNetwork", Flag: "flannel-network", Group: GroupNetwork, Env: "FLANNEL_NETWORK",
	Default: "10.1.0.0/16", Verbs: hosts, Shared: true, Change: Never,
	Help: "network of all pods and containers; each host gets a /24 subnet of it", check: on(flannelNetwork),
}, {
	Field: "flannelBackend", Flag: "flannel-backend", Group: GroupNetwork, Env: "FLANNEL_BACKEND", Default: "vxlan",
	Verbs: hosts, Shared: true, Change: Never,
	Help:   "flannel backend, which carries packets between hosts",
	Values: []string{"vxlan", "host-gw", "wireguard", "ipip", "udp"},
}, {
	Field: "flannelSubnetDir", Flag: "flannel-subnet-dir", Group: GroupNetwork, Env: "FLANNEL_SUBNET_DIR",
	Default: "/var/lib/kube-bootstrap/flannel", Verbs: both, Change: Never,
	Help:  "directory of subnet.env; it must be on disk, so that the host keeps its subnet after a reboot",
	check: on(absolute),
}, {
	Field: "trustedNetworks", Flag: "trusted-networks", Group: GroupNetwork, Verbs: hosts, Change: Freely,
	Help: "networks outside of the cluster from which the host filter accepts packets, comma separated; " +
		"0.0.0.0/0 removes the filter",
}, {
	Field: "restartPolicy", Flag: "restart-policy", Group: GroupCluster, Env: "RESTART_POLICY",
	Default: "unless-stopped", Verbs: hosts, Change: Freely,
	Help:  "Docker's restart policy of the containers of kube-bootstrap: no, on-failure[:N], always or unless-stopped",
	check: on(restartPolicy),
}, {
	Field: "arch", Flag: "arch", Group: GroupHost, Env: "ARCH", Verbs: loads, Change: Never,
	Help: "architecture of the images (empty: this machine's)", Values: Arches,
}, {
	Field: "ipAddress", Flag: "ip-address", Group: GroupHost, Env: "IP_ADDRESS", Verbs: ofAHost,
	Change: NeverOnControlPlane,
	Help:   "address at which other hosts reach this host (empty: the address of the default route's interface)",
	check:  on(reachable),
}, {
	Field: "netInterface", Flag: "net-interface", Group: GroupHost, Env: "NET_INTERFACE", Verbs: ofAHost,
	Change: NeverOnControlPlane,
	Help:   "interface that leads to the other hosts (empty: the default route's)", check: on(interfaceName),
}, {
	Field: "hostName", Flag: "host-name", Group: GroupHost, Verbs: ofAHost, Change: Never,
	Help: "name of this node (empty: the host's name)", check: on(HostName),
}, {
	Field: "timeoutForServices", Flag: "timeout-for-services", Group: GroupCluster, Env: "TIMEOUT_FOR_SERVICES",
	Default: "5m", Verbs: hosts, Change: Freely,
	Help: "limit of the wait for each service; a plain number is in seconds",
}, {
	Field: "dnsDomain", Flag: "dns-domain", Group: GroupNetwork, Env: "DNS_DOMAIN", Default: "cluster.local",
	Verbs: hosts, Shared: true, Change: Never,
	Help: "DNS domain of the cluster", check: on(domainName),
}, {
	Field: "dnsServerIP", Flag: "dns-server-ip", Group: GroupNetwork, Env: "DNS_SERVER_IP", Verbs: hosts, Shared: true,
	Change: Never,
	Help:   "address of the cluster's DNS server (empty: the tenth address of the service network)",
	check:  on(reachable),
}, {
	Field: "serviceNetwork", Flag: "service-network", Group: GroupNetwork, Default: "10.96.0.0/16", Verbs: hosts,
	Shared: true, Change: Never,
	Help: "network of the addresses of Services", check: on(serviceNetwork),
}, {
	Field: "cniPlugin", Flag: "cni-plugin", Group: GroupNetwork, Default: extension.CNIBridge, Verbs: hosts,
	Shared: true, Change: Never,
	Help: "CNI plugin of the pod network: bridge (docker0, shared with containers), flannel, calico, none, " +
		"or the path or URL of a manifest",
	as: manifest, check: on(extension.CheckCNIPlugin),
}, {
	Field: "addons", Flag: "addons", Group: GroupCluster, Verbs: Master | Preflight | ClusterUp, Change: Freely,
	Help: "addons of the cluster, comma separated: " + strings.Join(extension.AddonNames(), ", ") +
		", or the path or URL of a manifest; none: no addon (default of a new cluster of kube-bootstrap cluster up: " +
		strings.Join(extension.NewClusterAddons, ",") + ")",
	as: manifests, check: on(extension.CheckAddons),
}, {
	Field: "loadBalancerAddresses", Flag: "load-balancer-addresses", Group: GroupNetwork,
	Verbs: Master | Preflight | ClusterUp, Change: Freely,
	Help: "addresses that the addon metallb gives to Services of type LoadBalancer, as ranges or networks, " +
		"comma separated (default in a cluster of containers: the end of the network of the nodes)",
	check: on(loadBalancerAddresses),
}, {
	Field: "apiServerPort", Flag: "apiserver-port", Group: GroupNetwork, Also: []string{"api-server-port"},
	Default: "6443", Verbs: hosts, Shared: true, Change: Never,
	Help: "port of the API server", check: on(port),
}, {
	Field: "tlsSANs", Flag: "tls-san", Group: GroupNetwork, Verbs: Master | Preflight | ClusterUp, Shared: true,
	Change: OnCluster,
	Help:   "additional DNS names and IP addresses in the API servers' certificates, comma separated",
	check:  on(certificateNames),
}, {
	Field: "balancerPort", Flag: "balancer-port", Group: GroupNetwork, Default: "6440", Verbs: hosts, Shared: true,
	Change: Never,
	Help:   "port on 127.0.0.1 of every host that forwards to a ready API server; the next port forwards to etcd",
	check:  on(port),
}, {
	Field: "join", Flag: "join", Group: GroupJoin, Default: "false", Verbs: Master | Preflight, Change: EachRun,
	Help: "join the cluster at master-ip as a further control plane",
}, {
	Field: "masterIP", Flag: "master-ip", Group: GroupJoin, Env: "MASTER_IP", Verbs: Master | Worker | Preflight,
	Change: Freely,
	Help:   "address of the control plane to join", check: on(reachable),
}, {
	Field: "token", Flag: "token", Group: GroupJoin, Env: "TOKEN", Verbs: Master | Worker | Preflight, Secret: true,
	Change: EachRun,
	Help:   "bootstrap token; --token-file or the variable keeps it out of the shell history", check: on(token),
}, {
	Field: "tokenFile", Flag: "token-file", Group: GroupJoin, Verbs: Master | Worker | Preflight, Holds: "token",
	Change: EachRun,
	Help:   "file that contains the bootstrap token; - is standard input",
}, {
	Field: "caCertHash", Flag: "ca-cert-hash", Group: GroupJoin, Verbs: Master | Worker | Preflight, Change: EachRun,
	Help:  "required hash of the cluster's CA certificate, sha256:<64 hex digits>",
	check: on(caCertHash),
}, {
	Field: "certificateKey", Flag: "certificate-key", Group: GroupJoin, Verbs: Master | Preflight, Secret: true,
	Change: EachRun,
	Help: "key that decrypts the certificate authorities and keys of the control planes; " +
		"the variable keeps it out of the shell history",
	check: on(certificateKey),
}, {
	Field: "bundle", Flag: "bundle", Group: GroupImages, Change: Freely,
	Verbs: hosts | BareHosts | Bootstrap | Push | Restore,
	Help: "bundle of images, which are loaded instead of pulled " +
		"(empty: the registry, the bundle saved on the host, the cache, or a pull)",
}, {
	Field: "bundleBase", Flag: "bundle-base", Group: GroupImages, Verbs: loads | Push, Change: Freely,
	Help: "base of the bundle of --bundle, if that is an update (offline build --base)",
}, {
	Field: "verifyKey", Flag: "verify-key", Group: GroupImages, Verbs: loads | Push, Change: Freely,
	Help: "file of the ed25519 public key that verifies bundles (empty: unsigned bundles are accepted too)",
}, {
	Field: "signKey", Flag: "sign-key", Group: GroupImages, Verbs: Sign, Change: EachRun,
	Help: "file of the ed25519 private key in PEM that signs the bundle",
}, {
	Field: "criSocket", Flag: "cri-socket", Group: GroupHost, Verbs: loads, Change: Never,
	Help: "CRI socket that the kubelet uses (empty: that of the main Docker's containerd)", check: on(socket),
}, {
	Field: "noDedicated", Flag: "no-dedicated", Group: GroupCluster, Default: "false", Verbs: Master | ClusterUp,
	Change: Freely,
	Help:   "let ordinary pods run on the control plane too",
}, {
	Field: "keepImages", Flag: "keep-images", Group: GroupHost, Default: "false", Verbs: Turndown | Clean,
	Change: EachRun,
	Help:   "keep the loaded images, or the images of the hosts",
}, {
	Field: "ignorePreflight", Flag: "ignore-preflight", Group: GroupHost, Unsaved: true,
	Verbs: hosts | Bootstrap | Restore, Change: EachRun,
	Help: "names of preflight problems to ignore, comma separated; some problems cannot be ignored",
}}
