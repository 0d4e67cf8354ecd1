// Package addon contains the applications that kube-bootstrap applies to a
// cluster: kube-proxy, CoreDNS, the addons that it contains, and manifests of
// the user.
package addon

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Values are the values in the manifests.
type Values struct {
	ProxyImage   string
	FlannelImage string // for flannel in pods
	Backend      string // of flannel in pods: "vxlan"
	ProxyFields  string // further fields of the configuration of kube-proxy, as JSON
	DNSImage     string
	// Server is the API server that every host reaches without kube-proxy:
	// "https://10.0.0.1:6443".
	Server string
	// PodServer is the API server that CoreDNS and metrics-server reach without
	// kube-proxy, "10.0.0.1:6443", so that they need not wait for Service rules. If
	// it is empty, they use the kubernetes Service, as several control planes
	// require.
	PodServer string
	// Forward is the upstream for names outside of the cluster:
	// "/etc/resolv.conf", which is the host's file that the kubelet passes on,
	// or addresses. If it is empty, such names are not resolved.
	Forward   string
	PodCIDR   netip.Prefix
	DNSDomain string
	DNSIP     netip.Addr // address of the DNS Service
	ClusterCA []byte     // PEM

	MetricsImage   string
	KubeletCA      []byte // PEM; of the kubelets' serving certificates
	LocalPathImage string
	HelperImage    string // has a shell, and creates and deletes the volumes of local-path
	VolumesDir     string // directory of these volumes on each host

	ControllerImage, SpeakerImage string // of MetalLB
	// ranges and networks that MetalLB assigns; none: the user creates pools
	LoadBalancerAddresses []addresses.Range
}

// Applier applies the addons to the cluster that API reaches.
type Applier struct {
	Values func() (Values, error) // on use: it reads files that an earlier step may write
	API    kube.Connect
}

// Apply is the step that applies kube-proxy and CoreDNS. It has no Undo,
// because they disappear with the cluster.
func (a Applier) Apply() step.Step {
	return a.ApplyManifest("addons", "apply kube-proxy and CoreDNS", a.Manifests)
}

// ApplyManifest is the step that applies another manifest.
func (a Applier) ApplyManifest(id step.ID, name string, manifest func() ([]byte, error)) step.Step {
	return kube.ApplyStep(id, name, a.API, objectsOf(manifest))
}

func objectsOf(manifest func() ([]byte, error)) func() ([]*kube.Object, error) {
	return func() ([]*kube.Object, error) {
		text, err := manifest()
		if err != nil {
			return nil, err
		}
		return kube.Objects(text)
	}
}

//go:embed manifests/*.yaml
var manifests embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"indent": indent,
	"hash":   Hash,
	"host":   hostOf,
	"port":   portOf,
	"base64": base64.StdEncoding.EncodeToString,
}).ParseFS(manifests, "manifests/*.yaml"))

// Manifests renders kube-proxy, CoreDNS and the limits of nodes as one YAML stream.
func (a Applier) Manifests() ([]byte, error) {
	return a.render("kube-proxy.yaml", "coredns.yaml", "nodes.yaml")
}

// hostOf returns the host of an address or URL, and portOf its port.
func hostOf(server string) (string, error) {
	host, _, err := net.SplitHostPort(strings.TrimPrefix(server, "https://"))
	return host, err
}

func portOf(server string) (string, error) {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server, "https://"))
	return port, err
}

func indent(by int, text string) string {
	pad := "\n" + strings.Repeat(" ", by)
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", pad)
}

// Hash returns a short hash of texts. In an annotation of a pod template, it makes
// the pods restart when their configuration changes.
func Hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// ProxyConfig returns the configuration of kube-proxy with the user's fields in
// place of the same fields.
func (s Values) ProxyConfig() (string, error) {
	var own bytes.Buffer
	if err := templates.ExecuteTemplate(&own, "kube-proxy-config.yaml", s); err != nil || s.ProxyFields == "" {
		return own.String(), err
	}
	var fields, further map[string]any
	if err := yaml.Unmarshal(own.Bytes(), &fields); err != nil {
		return "", err
	}
	if err := yaml.Unmarshal([]byte(s.ProxyFields), &further); err != nil {
		return "", fmt.Errorf("further fields of kube-proxy: %w", err)
	}
	merge(fields, further)
	merged, err := yaml.Marshal(fields)
	return string(merged), err
}

// merge puts fields into others, and merges the fields that both have.
func merge(into, fields map[string]any) {
	for name, value := range fields {
		inner, isInner := value.(map[string]any)
		if old, both := into[name].(map[string]any); both && isInner {
			merge(old, inner)
			continue
		}
		into[name] = value
	}
}
