package source

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

var noEnv = HostEnv(func(string) string { return "" })

func hostEnv(pairs ...string) Env { return HostEnv(env(pairs...)) }

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	return must.Write(t, filepath.Join(t.TempDir(), "kb.yaml"), text)
}

const head = "apiVersion: kube-bootstrap.dev/v1alpha1\nkind: Cluster\n"

func TestPrecedence(t *testing.T) {
	path := write(t, head+"flannelNetwork: 10.2.0.0/16\nflannelBackend: ipip\ndnsDomain: file.local\nrestartPolicy: "+
		"always\n")
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags, config.Master)
	must.NoError(t, flags.Parse([]string{
		"--flannel-network", "10.4.0.0/16", "--ignore-preflight", "swap", "--ignore-preflight=clock,ports",
		"--no-dedicated",
	}))
	cfg, from, err := Load(path, hostEnv("FLANNEL_NETWORK", "10.3.0.0/16", "FLANNEL_BACKEND", "host-gw",
		"RESTART_POLICY", "no", "KUBE_BOOTSTRAP_RESTART_POLICY", "on-failure:3", "K8S_VERSION", "1.35.4"), flags)
	must.NoError(t, err)
	for _, c := range []struct{ field, got, want, origin string }{
		{"flannelNetwork", cfg.FlannelNetwork.String(), "10.4.0.0/16", "flag --flannel-network"},
		{"flannelBackend", cfg.FlannelBackend, "host-gw", "environment FLANNEL_BACKEND"},
		{"restartPolicy", cfg.RestartPolicy, "on-failure:3", "environment KUBE_BOOTSTRAP_RESTART_POLICY"},
		{"dnsDomain", cfg.DNSDomain, "file.local", "file " + path + ":5"},
		{"kubernetesVersion", cfg.KubernetesVersion, "v1.35.4", "environment K8S_VERSION"},
		{"serviceNetwork", cfg.ServiceNetwork.String(), "10.96.0.0/16", "default"},
		{"ignorePreflight", strings.Join(cfg.IgnorePreflight, "+"), "swap+clock+ports", "flag --ignore-preflight"},
	} {
		if c.got != c.want || from[c.field].String() != c.origin {
			t.Errorf("%s = %q from %q, want %q from %q", c.field, c.got, from[c.field], c.want, c.origin)
		}
	}
	if !cfg.NoDedicated {
		t.Error("--no-dedicated without a value is not true")
	}
}

func TestBadFilesNameLineAndField(t *testing.T) {
	for text, want := range map[string]string{
		head + "flannelNetwrk: 10.1.0.0/16\n": "kb.yaml:3: flannelNetwrk: unknown field, did you mean " +
			"flannelNetwork?",
		head + "MASTER_IP: 10.0.0.1\n": "kb.yaml:3: MASTER_IP: unknown field, did you mean " +
			"masterIP?",
		head + "somethingElse: 1\n": "kb.yaml:3: somethingElse: unknown field; " +
			"`kube-bootstrap config init` prints all there are",
		head + "flannelIPMasq: maybe\n":   `kb.yaml:3: flannelIPMasq: "maybe": must be true or false`,
		head + "token: [a]\n":             "kb.yaml:3: token: \"(hidden)\": must be a single value",
		head + "arch: {a: b}\n":           "kb.yaml:3: arch: \"\": must be a single value",
		head + "arch: arm\narch: arm64\n": "kb.yaml:4: arch: already said on line 3",
		head + "nodes:\n- {role: worker, name: ''}\n": "kb.yaml:4: nodes[0].name: \"\": must be a name; leave " +
			"the field out for a default one",
		"kind: Cluster\n": `kb.yaml:1: apiVersion: missing; write "apiVersion: kube-bootstrap.dev/v1alpha1"`,
		"apiVersion: kube-bootstrap.dev/v2\nkind: Cluster\n": `kb.yaml:1: apiVersion: "kube-bootstrap.dev/v2" is not known; write kube-bootstrap.dev/v1alpha1`,
		head + "registry: reg:5000\n":                        `kb.yaml:3: registry: must be a block of fields, such as "registry: {address: ..., username: ...}"`,
		head + "registry:\n  addr: reg:5000\n": "kb.yaml:4: registry.addr: unknown field, did you mean " +
			"registry.address?",
		"- a\n":                       "kb.yaml: line 1: must be fields with values",
		head + "---\nkind: Cluster\n": "a second document; put everything into one",
		"a: [\n":                      "kb.yaml: not YAML: ",
	} {
		_, _, err := Load(write(t, text), noEnv, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestEveryBadValueIsNamed(t *testing.T) {
	for _, c := range []struct{ env, value, want string }{
		{"K8S_VERSION", "latest", `kubernetesVersion: Invalid value: "latest": must be a release of Kubernetes ` +
			catalog.Supported() + `, such as v1.`},
		{"K8S_VERSION", "v1.30.0", `kubernetesVersion: Invalid value: "v1.30.0": must be a release of Kubernetes ` +
			catalog.Supported() + `, such as v1.`},
		{"ETCD_VERSION", "2.2.5", `etcdVersion: Invalid value: "v2.2.5": must be a release of etcd `},
		{"ETCD_VERSION", "3", `etcdVersion: Invalid value: "v3": must be a release of etcd `},
		{"FLANNEL_VERSION", "x", `flannelVersion: Invalid value: "x": must be a release of flannel `},
		{"FLANNEL_IPMASQ", "perhaps",
			`flannelIPMasq: Invalid value: "perhaps": must be true or false (from environment FLANNEL_IPMASQ)`},
		{"FLANNEL_NETWORK", "10.1.0.0",
			`flannelNetwork: Invalid value: "10.1.0.0": must be a network, such as 10.1.0.0/16`},
		{"FLANNEL_NETWORK", "10.1.2.0/16", `has host bits set; write 10.1.0.0/16`},
		{"KUBE_BOOTSTRAP_TRUSTED_NETWORKS", "10.1.0.0/16,10.1.2.0/16",
			`"10.1.2.0/16" has host bits set; write 10.1.0.0/16`},
		{"FLANNEL_NETWORK", "fd00::/16", `must be an IPv4 network`},
		{"FLANNEL_NETWORK", "10.1.0.0/16,fd00::/64",
			`flannelNetwork: Invalid value: "10.1.0.0/16,fd00::/64": must be one network, such as 10.1.0.0/16 (from environment FLANNEL_NETWORK)`},
		{"KUBE_BOOTSTRAP_DIND_SUBNET", "10.1.0.0/16,10.2.0.0/16",
			`dindSubnet: Invalid value: "10.1.0.0/16,10.2.0.0/16": must be one network`},
		{"FLANNEL_NETWORK", "10.1.0.0/24", `is too small: each host gets a /24, so two hosts need at least a /23`},
		{"FLANNEL_NETWORK", "10.96.0.0/12",
			`serviceNetwork: Invalid value: "10.96.0.0/16": overlaps flannelNetwork 10.96.0.0/12`},
		{"FLANNEL_BACKEND", "tcp",
			`flannelBackend: Unsupported value: "tcp": supported values: "vxlan", "host-gw", "wireguard", "ipip", "udp"`},
		{"FLANNEL_SUBNET_DIR", "run/flannel",
			`flannelSubnetDir: Invalid value: "run/flannel": must be an absolute path`},
		{"RESTART_POLICY", "never", `restartPolicy: Invalid value: "never": must be no, on-failure`},
		{"ARCH", "sparc", `arch: Unsupported value: "sparc"`},
		{"IP_ADDRESS", "1.2.3", `ipAddress: Invalid value: "1.2.3": must be an IPv4 address`},
		{"IP_ADDRESS", "127.0.0.1", `must be an address that other hosts can reach`},
		{"IP_ADDRESS", "10.1.4.5", `lies inside flannelNetwork 10.1.0.0/16`},
		{"MASTER_IP", "10.96.4.5", `masterIP: Invalid value: "10.96.4.5": lies inside serviceNetwork 10.96.0.0/16`},
		{"NET_INTERFACE", "a/b", `netInterface: Invalid value: "a/b": must be the name of an interface`},
		{"TIMEOUT_FOR_SERVICES", "soon", `must be a time greater than zero`},
		{"DNS_DOMAIN", "Cluster_Local", `dnsDomain: Invalid value: "Cluster_Local": must be lower-case`},
		{"DNS_SERVER_IP", "10.97.0.10",
			`dnsServerIP: Invalid value: "10.97.0.10": must be an address of serviceNetwork 10.96.0.0/16, such as 10.96.0.10`},
		{"DNS_SERVER_IP", "10.96.0.1", `is taken`},
		{"TOKEN", "hunter2", `token: Invalid value: "(hidden)": must be 6 characters`},
		{"KUBE_BOOTSTRAP_CA_CERT_HASH", "abc", `caCertHash: Invalid value: "abc": must be sha256: and 64 hex digits`},
		{"KUBE_BOOTSTRAP_APISERVER_PORT", "70000", `apiServerPort: Invalid value: "70000": must be a port, 1 to 65535`},
		{"KUBE_BOOTSTRAP_TLS_SAN", "k8s.example.com,10.0.0.5,*.lan,k8s_1",
			`tlsSANs: Invalid value: "k8s.example.com,10.0.0.5,*.lan,k8s_1": must be DNS names, such as k8s.example.com or *.example.com, and IP addresses; "k8s_1" is neither`},
		{"KUBE_BOOTSTRAP_SERVICE_NETWORK", "10.96.0.0/30",
			`serviceNetwork: Invalid value: "10.96.0.0/30": is too small`},
		{"KUBE_BOOTSTRAP_HOST_NAME", "My Host", `hostName: Invalid value: "My Host"`},
		{"KUBE_BOOTSTRAP_CNI_PLUGIN", "cilium",
			`cniPlugin: Invalid value: "cilium": must be bridge, flannel, calico, none, or the path or URL`},
		{"KUBE_BOOTSTRAP_CNI_PLUGIN", "http://x/net.yaml", `must begin with https://, or end in #sha256:`},
		{"KUBE_BOOTSTRAP_ADDONS", "dashboard,weather",
			`addons: Invalid value: "dashboard,weather": must be none, metrics-server, local-path, metallb, dashboard, or the path or URL of a manifest; "weather" is not`},
		{"KUBE_BOOTSTRAP_ADDONS", "https:///x", `addons: Invalid value: "https:///x": must be a whole URL`},
		{"KUBE_BOOTSTRAP_LOAD_BALANCER_ADDRESSES", "192.168.1.240-192.168.1.250",
			`loadBalancerAddresses: Invalid value: "192.168.1.240-192.168.1.250": needs the addon metallb; add it to addons`},
		{"KUBE_BOOTSTRAP_LOAD_BALANCER_ADDRESSES", "192.168.1.240",
			`"192.168.1.240" must be a range or a network, such as 192.168.1.240-192.168.1.250 or fd00::/120`},
		{"KUBE_BOOTSTRAP_LOAD_BALANCER_ADDRESSES", "192.168.1.250-192.168.1.240",
			`ends before it begins; write 192.168.1.240-192.168.1.250`},
		{"KUBE_BOOTSTRAP_LOAD_BALANCER_ADDRESSES", "192.168.1.0-fd00::1",
			`"192.168.1.0-fd00::1" must be a range or a network`},
		{"KUBE_BOOTSTRAP_LOAD_BALANCER_ADDRESSES", "fd00::/120,192.168.1.1/24",
			`"192.168.1.1/24" has host bits set; write 192.168.1.0/24`},
		{"KUBE_BOOTSTRAP_LOAD_BALANCER_ADDRESSES", "fe80::/120",
			`must have only addresses that other machines can reach`},
		{"KUBE_BOOTSTRAP_LOAD_BALANCER_ADDRESSES", "10.0.0.0/24,10.0.0.9-10.0.0.9",
			`"10.0.0.9-10.0.0.9" overlaps another range`},
		{"KUBE_BOOTSTRAP_LOAD_BALANCER_ADDRESSES", "10.95.0.0-10.96.0.0",
			`10.95.0.0-10.96.0.0 overlaps serviceNetwork 10.96.0.0/16; choose addresses of the hosts' network`},
		{"KUBE_BOOTSTRAP_LOAD_BALANCER_ADDRESSES", "10.1.255.255-10.2.0.0",
			`10.1.255.255-10.2.0.0 overlaps flannelNetwork 10.1.0.0/16`},
		{"REG_PREFIX", "https://x", `registry.address: Invalid value: "https://x": must be a registry without scheme`},
		{"REG_PREFIX", "me:hunter2@reg.test",
			`registry.address: Invalid value: "(hidden)@reg.test": must be a registry without scheme`},
		{"KUBE_BOOTSTRAP_REGISTRY_MIRROR", "docker.io=me:hunter2@a.test",
			`registryMirrors: Invalid value: "(hidden)@a.test": contains a user`},
		{"KUBE_BOOTSTRAP_LOCAL_REGISTRY_CACHE", "0",
			`localRegistryCache: Invalid value: "0": must be an amount, such as 2Gi or 500Mi (from environment KUBE_BOOTSTRAP_LOCAL_REGISTRY_CACHE)`},
		{"KUBE_BOOTSTRAP_NODE_MEMORY", "much", `nodeMemory: Invalid value: "much": must be an amount`},
		{"KUBE_BOOTSTRAP_NODE_MEMORY", "-2Gi", `nodeMemory: Invalid value: "-2Gi": must be an amount`},
		{"KUBE_BOOTSTRAP_NODE_DISK", "1Ki", `nodeDisk: Invalid value: "1Ki": must be an amount`},
		{"KUBE_BOOTSTRAP_NODE_CPUS", "0.05",
			`nodeCPUs: Invalid value: "0.05": must be a number of processors of at least 0.1, such as 2 or 1.5`},
		{"KUBE_BOOTSTRAP_NODE_LABEL", "a=b,c",
			`nodeLabels: Invalid value: "a=b,c": "c" must be KEY=VALUE, such as disk=ssd`},
		{"KUBE_BOOTSTRAP_NODE_LABEL", "kubernetes.io/x=y",
			`kubernetes.io/x is in a domain that Kubernetes keeps for itself`},
		{"KUBE_BOOTSTRAP_NODE_TAINT", "a=b:Never",
			`nodeTaints: Invalid value: "a=b:Never": "a=b:Never" must be KEY=VALUE:EFFECT`},
		{"KUBE_BOOTSTRAP_NODE_PORT", "8080",
			`nodePorts: Invalid value: "8080": "8080" must be [ADDRESS:]PORT:NODEPORT[/udp]`},
		{"KUBE_BOOTSTRAP_NODE_MOUNT", "/srv:/",
			`nodeMounts: Invalid value: "/srv:/": "/srv:/" must not have the target /`},
		{"KUBE_BOOTSTRAP_DOWNLOAD_MIRROR", "https://me:hunter2@a.test",
			`downloadMirror: Invalid value: "(hidden)@a.test": must have no user in it`},
		{"KUBE_BOOTSTRAP_CNI_MIRROR", "a.test",
			`cniMirror: Invalid value: "a.test": must begin with https:// and a host`},
		{"KUBE_BOOTSTRAP_OIDC_ISSUER_URL", "https://id.example.com?x=1",
			`oidc.issuerURL: Invalid value: "https://id.example.com?x=1": must be an https URL`},
		{"KUBE_BOOTSTRAP_REGISTRY_MIRROR", "docker.io",
			`registryMirrors: Invalid value: "docker.io": "docker.io" must be REGISTRY=HOST`},
		{"KUBE_BOOTSTRAP_CRI_SOCKET", "cri", `criSocket: Invalid value: "cri": must be the path of a socket`},
		{"KUBE_BOOTSTRAP_TOKEN_FILE", "/nowhere/t",
			`tokenFile: Invalid value: "/nowhere/t": must be a file that can be read`},
	} {
		cfg, _, err := Load("", hostEnv(c.env, c.value), nil)
		text := ""
		if err != nil {
			text = err.Error()
		} else if err := cfg.Validate(config.RoleControlPlane).ToAggregate(); err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s=%s:\n got %s\nwant %s", c.env, c.value, text, c.want)
		}
		if strings.Contains(text, "hunter2") {
			t.Error("a secret is in the error")
		}
	}
}
