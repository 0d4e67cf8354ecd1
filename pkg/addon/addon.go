// Package addon is what runs on every cluster beside the control plane:
// kube-proxy, CoreDNS, and whatever YAML the user hands in.
package addon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"text/template"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Settings is what the manifests differ in from cluster to cluster.
type Settings struct {
	ProxyImage   string
	FlannelImage string   // for flannel as a pod network of its own
	Backend      string   // of that flannel: "vxlan"
	ProxyCommand []string // what starts kube-proxy in its image; default ["kube-proxy"]
	ProxyMode    string   // "iptables" (default) or "nftables"
	DNSImage     string
	// Server is the API server as every host reaches it without kube-proxy:
	// "https://10.0.0.1:6443".
	Server string
	// DNSServer is the API server as a pod reaches it without kube-proxy,
	// "10.0.0.1:6443": CoreDNS then need not wait for Service rules. Empty: by
	// the kubernetes Service, for a cluster with several control planes.
	DNSServer string
	// Forward answers names outside of the cluster: "/etc/resolv.conf" (that
	// of the host, as the kubelet hands it on) or addresses. Empty: nobody
	// does, for a host without any name server.
	Forward   string
	PodCIDR   string
	DNSDomain string
	DNSIP     string // address of the DNS Service
	ClusterCA []byte // PEM
}

// Addons applies the addons to the cluster that API reaches.
type Addons struct {
	Settings
	API kube.Connect
}

// Apply is the step that makes the cluster run kube-proxy and CoreDNS. It goes
// away with the cluster.
func (a Addons) Apply() step.Step {
	return a.ApplyManifest("apply kube-proxy and CoreDNS", a.Manifests)
}

// ApplyManifest is the step that applies YAML of somebody else's: a pod network
// that is not ours, an addon.
func (a Addons) ApplyManifest(name string, manifest func() ([]byte, error)) step.Step {
	objects := func() ([]*kube.Object, error) {
		text, err := manifest()
		if err != nil {
			return nil, err
		}
		return kube.Objects(text)
	}
	return step.Step{
		Name:  name,
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			all, err := objects()
			if err != nil {
				return nil, err
			}
			return kube.Missing(ctx, a.API, all)
		},
		Apply: func(ctx context.Context) error {
			all, err := objects()
			if err != nil {
				return err
			}
			return kube.Apply(ctx, a.API, all)
		},
	}
}

//go:embed manifests/*.yaml
var manifests embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"indent": indent,
	"hash":   hash,
	"base64": base64.StdEncoding.EncodeToString,
}).ParseFS(manifests, "manifests/*.yaml"))

// Manifests renders kube-proxy and CoreDNS as one YAML stream.
func (a Addons) Manifests() ([]byte, error) {
	s := a.Settings.withDefaults()
	var out bytes.Buffer
	for _, name := range []string{"kube-proxy.yaml", "coredns.yaml"} {
		if err := templates.ExecuteTemplate(&out, name, s); err != nil {
			return nil, fmt.Errorf("render %s: %w", name, err)
		}
	}
	return out.Bytes(), nil
}

func (s Settings) withDefaults() Settings {
	if len(s.ProxyCommand) == 0 {
		s.ProxyCommand = []string{"kube-proxy"}
	}
	if s.ProxyMode == "" {
		s.ProxyMode = "iptables"
	}
	return s
}

// DNSHost and DNSPort are the two halves of DNSServer.
func (s Settings) DNSHost() (string, error) {
	host, _, err := net.SplitHostPort(s.DNSServer)
	return host, err
}

// DNSPort is the port of DNSServer.
func (s Settings) DNSPort() (string, error) {
	_, port, err := net.SplitHostPort(s.DNSServer)
	return port, err
}

func indent(by int, text string) string {
	pad := "\n" + strings.Repeat(" ", by)
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", pad)
}

// hash makes a pod template change with the config its pods read at start.
func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}
