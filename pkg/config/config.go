// Package config is the one configuration of kube-bootstrap. A setting is one row of one table (table.go); its
// flag, its environment variables, its place in the file, `config view`, its check and its line in
// docs/configuration.md all come from that row.
//
//	flag > environment > file > default
package config

import (
	"cmp"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
)

// What a configuration file begins with.
const (
	APIVersion = "kube-bootstrap.dev/v1alpha1"
	Kind       = "Cluster"
)

// Header has the fields that a configuration file begins with.
var Header = map[string]string{"apiVersion": APIVersion, "kind": Kind}

// SavedPath is the file with the saved settings of a host, without secrets.
const SavedPath = "/var/lib/kube-bootstrap/config.yaml"

// The two things a host can become.
const (
	RoleControlPlane = "master"
	RoleWorker       = "worker"
)

// Config holds every setting as a value. Load fills it from texts, see kinds. A zero value means that the
// setting is not set: "find out" or "from the catalogue", as its help says.
type Config struct {
	KubernetesVersion  string // with v: v1.36.3
	EtcdVersion        string // with v, or empty
	FlannelVersion     string // with v, or empty
	FlannelIPMasq      bool
	FlannelNetwork     Networks
	FlannelBackend     string
	FlannelSubnetDir   string
	TrustedNetworks    []netip.Prefix // outside of the cluster
	RestartPolicy      string
	Arch               string // as Go says it: amd64
	IPAddress          netip.Addr
	NetInterface       string
	HostName           string
	TimeoutForServices time.Duration
	DNSDomain          string
	DNSServerIP        netip.Addr
	CNIPlugin          string   // bridge, flannel, calico, none, a path or a URL
	Addons             []string // each one of extension.AddonNames, a path or a URL
	ServiceNetwork     Networks
	APIServerPort      int
	TLSSANs            []string // names and addresses
	BalancerPort       int
	Join               bool
	MasterIP           netip.Addr
	Token              string // secret
	TokenFile          string
	CACertHash         string // sha256:<hex>
	CertificateKey     string // secret
	Registry           RegistrySettings
	RegistryMirrors    []mirror.Mirror
	Bundle             string
	BundleBase         string
	VerifyKey          string
	SignKey            string
	K8sDir             string
	CRISocket          string
	NoDedicated        bool
	KeepImages         bool
	IgnorePreflight    []string

	DownloadMirror url.URL // without a slash at its end; not set: the official site
	CNIMirror      url.URL // as DownloadMirror
	CAFile         string
	StallTimeout   time.Duration

	LoadBalancerAddresses []addresses.Range

	Components   Components
	FeatureGates map[string]bool

	OIDC            OIDC
	AuditPolicy     string // JSON
	AuditPolicyFile string

	NodeLabels    []Label
	NodeTaints    []Taint
	NodeCPUs      resource.Quantity
	NodeMemory    resource.Quantity
	NodeDisk      resource.Quantity
	KubeletConfig string // JSON
	NodePorts     []PublishedPort
	NodeMounts    []NodeMount

	Name               string
	Masters            int
	Workers            int
	DindSubnet         Networks
	HostImage          string
	LocalRegistry      int // port; 0: none
	LocalRegistryCache resource.Quantity
	DockerHost         string
	DockerContext      string
	SSH                connection.SSH // of nodes that are machines
	Nodes              []NodeEntry    // instead of Masters and Workers
}

// RegistrySettings is the private registry with the images, and its credentials.
type RegistrySettings struct {
	Address      string // registry[:port][/prefix]
	Username     string
	Password     string // secret
	PasswordFile string
	Token        string // secret
	TokenFile    string
	CA           string // path, as the two below
	Cert         string
	Key          string
	Insecure     bool
}

// Default returns the configuration of a host about which nothing was said.
func Default() Config {
	var c Config
	for _, s := range settings {
		if s.Default != "" {
			_ = s.at(&c).set(s.Default) // a test sets every default
		}
	}
	c.Arch = runtime.GOARCH
	return c.Complete()
}

// Complete brings equal spellings to one form and derives what follows from them.
func (c Config) Complete() Config {
	if release, _, err := catalog.Kubernetes(c.KubernetesVersion); err == nil { // Validate reports an invalid version
		c.KubernetesVersion = release
	}
	c.EtcdVersion, c.FlannelVersion = withV(c.EtcdVersion), withV(c.FlannelVersion)
	c.Arch = cmp.Or(machineNames[c.Arch], c.Arch)
	if !c.DNSServerIP.IsValid() {
		c.DNSServerIP = c.ServiceNetwork.dns()
	}
	c.Registry.Address = strings.TrimSuffix(c.Registry.Address, "/")
	c.DNSDomain = strings.TrimSuffix(c.DNSDomain, ".")
	return c
}

func withV(version string) string {
	if version != "" && version[0] >= '0' && version[0] <= '9' {
		return "v" + version
	}
	return version
}
