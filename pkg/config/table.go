package config

import (
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
)

var (
	// Arches are the architectures there are, by their Go names.
	Arches = []string{"amd64", "arm64", "arm", "ppc64le", "s390x"}

	// machineNames translates `uname -m`.
	machineNames = map[string]string{
		"x86_64": "amd64", "aarch64": "arm64", "armv6l": "arm", "armv7l": "arm", "armhf": "arm", "armv8l": "arm",
	}
)

var settings = slices.Concat(clusterSettings, componentSettings, accessSettings, nodeSettings, machineSettings, containerSettings, mirrorSettings, downloadSettings, registrySettings)

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
	Help: "masquerade what leaves the flannel network",
}, {
	Field: "flannelNetwork", Flag: "flannel-network", Group: GroupNetwork, Env: "FLANNEL_NETWORK",
	Default: "10.1.0.0/16", Verbs: hosts, Shared: true, Change: Never,
	Help: "network shared by all pods and containers; each host gets a /24 of it", check: on(flannelNetwork),
}, {
	Field: "flannelBackend", Flag: "flannel-backend", Group: GroupNetwork, Env: "FLANNEL_BACKEND", Default: "vxlan",
	Verbs: hosts, Shared: true, Change: Never,
	Help: "how packets cross between hosts", Values: []string{"vxlan", "host-gw", "wireguard", "ipip", "udp"},
}, {
	Field: "flannelSubnetDir", Flag: "flannel-subnet-dir", Group: GroupNetwork, Env: "FLANNEL_SUBNET_DIR",
	Default: "/var/lib/kube-bootstrap/flannel", Verbs: both, Change: Never,
	Help:  "directory of subnet.env; keep it on disk, so that the host keeps its subnet over a reboot",
	check: on(absolute),
}, {
	Field: "trustedNetworks", Flag: "trusted-networks", Group: GroupNetwork, Verbs: hosts, Change: Freely,
	Help: "networks outside of the cluster that the filter of hosts accepts, comma separated; 0.0.0.0/0 removes the filter",
}, {
	Field: "restartPolicy", Flag: "restart-policy", Group: GroupCluster, Env: "RESTART_POLICY",
	Default: "unless-stopped", Verbs: hosts, Change: Freely,
	Help:  "Docker's restart policy of our containers: no, on-failure[:N], always or unless-stopped",
	check: on(restartPolicy),
}, {
	Field: "arch", Flag: "arch", Group: GroupHost, Env: "ARCH", Verbs: loads, Change: Never,
	Help: "architecture of the images (empty: this machine's)", Values: Arches,
}, {
	Field: "ipAddress", Flag: "ip-address", Group: GroupHost, Env: "IP_ADDRESS", Verbs: both, Change: NeverOnMaster,
	Help:  "address of this host that the others reach (empty: that of the default route's interface)",
	check: on(reachable),
}, {
	Field: "netInterface", Flag: "net-interface", Group: GroupHost, Env: "NET_INTERFACE", Verbs: both,
	Change: NeverOnMaster,
	Help:   "interface that leads to the other hosts (empty: the default route's)", check: on(interfaceName),
}, {
	Field: "hostName", Flag: "host-name", Group: GroupHost, Verbs: both, Change: Never,
	Help: "name of this node (empty: the host's name)", check: on(HostName),
}, {
	Field: "timeoutForServices", Flag: "timeout-for-services", Group: GroupCluster, Env: "TIMEOUT_FOR_SERVICES",
	Default: "5m", Verbs: hosts, Change: Freely,
	Help: "how long to wait for each service to answer; a plain number is seconds",
}, {
	Field: "dnsDomain", Flag: "dns-domain", Group: GroupNetwork, Env: "DNS_DOMAIN", Default: "cluster.local",
	Verbs: hosts, Shared: true, Change: Never,
	Help: "domain of the cluster's own names", check: on(domainName),
}, {
	Field: "dnsServerIP", Flag: "dns-server-ip", Group: GroupNetwork, Env: "DNS_SERVER_IP", Verbs: hosts, Shared: true,
	Change: Never,
	Help:   "address of the cluster's DNS (empty: the tenth of the service network)", check: on(reachable),
}, {
	Field: "serviceNetwork", Flag: "service-network", Group: GroupNetwork, Default: "10.96.0.0/16", Verbs: hosts,
	Shared: true, Change: Never,
	Help: "network of the services' addresses", check: on(serviceNetwork),
}, {
	Field: "cniPlugin", Flag: "cni-plugin", Group: GroupNetwork, Default: CNIBridge, Verbs: hosts, Shared: true,
	Change: Never,
	Help:   "network of the pods: bridge (docker0, shared with containers), flannel, calico, none, or the path or URL of a manifest",
	as:     manifest, check: on(cniPlugin),
}, {
	Field: "addons", Flag: "addons", Group: GroupCluster, Verbs: Master | Preflight | ClusterUp, Change: Freely,
	Help: "applications to add, comma separated: " + strings.Join(AddonNames(), ", ") + ", or the path or URL of a manifest; none: no addon (default of a new cluster of kube-bootstrap cluster up: " + strings.Join(newClusterAddons, ",") + ")",
	as:   manifests, check: on(addons),
}, {
	Field: "loadBalancerAddresses", Flag: "load-balancer-addresses", Group: GroupNetwork,
	Verbs: Master | Preflight | ClusterUp, Change: Freely,
	Help:  "addresses that the addon metallb gives to Services of type LoadBalancer, as ranges or networks, comma separated (default in a cluster of containers: the end of the network of the nodes)",
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
	Help:   "port on 127.0.0.1 of every host that leads to an API server which is ready; the next one leads to etcd",
	check:  on(port),
}, {
	Field: "join", Flag: "join", Group: GroupJoin, Default: "false", Verbs: Master | Preflight, Change: EachRun,
	Help: "become a further control plane of the cluster at master-ip",
}, {
	Field: "masterIP", Flag: "master-ip", Group: GroupJoin, Env: "MASTER_IP", Verbs: Master | Worker | Preflight,
	Change: Freely,
	Help:   "address of the control-plane host to join", check: on(reachable),
}, {
	Field: "token", Flag: "token", Group: GroupJoin, Env: "TOKEN", Verbs: Master | Worker | Preflight, Secret: true,
	Change: EachRun,
	Help:   "bootstrap token; --token-file or the environment keeps it out of the shell's history", check: on(token),
}, {
	Field: "tokenFile", Flag: "token-file", Group: GroupJoin, Verbs: Master | Worker | Preflight, Holds: "token",
	Change: EachRun,
	Help:   "file that holds the bootstrap token, - for standard input",
}, {
	Field: "caCertHash", Flag: "ca-cert-hash", Group: GroupJoin, Verbs: Master | Worker | Preflight, Change: EachRun,
	Help:  "hash of the cluster's CA certificate that this host insists on, sha256:<64 hex digits>",
	check: on(caCertHash),
}, {
	Field: "certificateKey", Flag: "certificate-key", Group: GroupJoin, Verbs: Master | Preflight, Secret: true,
	Change: EachRun,
	Help:   "key that opens what control planes share; the environment keeps it out of the shell's history",
	check:  on(certificateKey),
}, {
	Field: "bundle", Flag: "bundle", Group: GroupImages, Verbs: hosts | BareHosts | Bootstrap | Push, Change: Freely,
	Help: "bundle of images to load; with it nothing is pulled (empty: the registry, the bundle kept on the host, the cache, or a pull)",
}, {
	Field: "bundleBase", Flag: "bundle-base", Group: GroupImages, Verbs: loads | Push, Change: Freely,
	Help: "bundle that the one of --bundle was built on (offline build --base)",
}, {
	Field: "verifyKey", Flag: "verify-key", Group: GroupImages, Verbs: loads | Push, Change: Freely,
	Help: "file of the ed25519 public key that bundles must be signed by (empty: unsigned ones are taken too)",
}, {
	Field: "signKey", Flag: "sign-key", Group: GroupImages, Verbs: Sign, Change: EachRun,
	Help: "file of an ed25519 private key in PEM, to sign the bundle with",
}, {
	Field: "criSocket", Flag: "cri-socket", Group: GroupHost, Verbs: loads, Change: Never,
	Help: "CRI socket that the kubelet uses (empty: that of the containerd behind the main Docker)", check: on(socket),
}, {
	Field: "noDedicated", Flag: "no-dedicated", Group: GroupCluster, Default: "false", Verbs: Master | ClusterUp,
	Change: Freely,
	Help:   "let workloads run on the control-plane host too",
}, {
	Field: "keepImages", Flag: "keep-images", Group: GroupHost, Default: "false", Verbs: Turndown | Clean,
	Change: EachRun,
	Help:   "leave the images that were loaded, or of which hosts were made",
}, {
	Field: "ignorePreflight", Flag: "ignore-preflight", Group: GroupHost, Verbs: hosts | Bootstrap, Unsaved: true,
	Change: EachRun,
	Help:   "preflight problems to go on with, by name, comma separated; not every problem can be ignored",
}}
