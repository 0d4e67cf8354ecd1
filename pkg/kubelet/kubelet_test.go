package kubelet

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func fresh(t *testing.T, controlPlane bool) Kubelet {
	t.Helper()
	files := host.Files{Root: t.TempDir()}
	must.NoError(t, os.MkdirAll(files.Path(host.StateDir), 0o700))
	k := Kubelet{
		Docker:   func() *docker.Engine { return docker.Open(files.Path("/run/docker.sock")) }, // none runs
		Identity: Identity{Files: files, HostName: "node-1", ControlPlane: controlPlane},
		Config: Configuration{
			ClusterDNS: netip.MustParseAddr("10.96.0.10"), DNSDomain: "cluster.local", CgroupDriver: "systemd", CRISocket: "/run/containerd/containerd.sock",
		},
		Image: "registry.example/hyperkube:v1.36.3", NodeIP: netip.MustParseAddr("10.0.0.1"), RestartPolicy: "unless-stopped",
	}
	put(t, k.Files, hostResolv, "search example.org\nnameserver 192.0.2.1\n")
	if controlPlane {
		k.Server = "https://10.0.0.1:6443"
		k.Certificate = certificate(t, k.Files)
	}
	return k
}

// TestConfigHasNoFieldThatAVersionLacks: the oldest version knows every field
// that is written for all versions.
func TestConfigHasNoFieldThatAVersionLacks(t *testing.T) {
	k := fresh(t, true)
	data, err := k.Config.encode("/etc/resolv.conf", k.ControlPlane)
	must.NoError(t, err)
	var written map[string]any
	if err := yaml.Unmarshal(data, &written); err != nil || len(written) == 0 {
		t.Fatal(written, err)
	}
	for field := range written {
		for _, m := range catalog.Minors() {
			if err := catalog.CheckKubeletField(m.Patch, field); err != nil {
				t.Error(err)
			}
		}
	}
}

// certificate makes an authority as the step before leaves it.
func certificate(t *testing.T, files host.Files) func(context.Context) ([]byte, error) {
	t.Helper()
	ca := authorityOf(t)
	put(t, files, clientCA, string(ca.PEM().Cert))
	return func(context.Context) ([]byte, error) {
		pair, err := ca.Issue(pki.CertificateRequest{CommonName: "system:node:node-1", Organizations: []string{"system:nodes"}, Client: true}, time.Now())
		return append(pair.Cert, pair.Key...), err
	}
}

func put(t *testing.T, files host.Files, path, text string) {
	t.Helper()
	must.Write(t, files.Path(path), text)
}

func TestResolv(t *testing.T) {
	for _, c := range []struct{ name, conf, system, path, own string }{
		{"plain", "nameserver 192.0.2.1\n", "", hostEtc + "/resolv.conf", ""},
		{"docker", "# made by Docker\nnameserver 127.0.0.11\nsearch example.org\nnameserver 192.0.2.1\n", "", resolvFile, "search example.org\nnameserver 192.0.2.1\n"},
		{"systemd-resolved", "nameserver 127.0.0.53\n", "nameserver 192.0.2.1\n", systemResolv, ""},
		{"none left", "nameserver ::1\n", "", resolvFile, ""},
		{"empty", "", "", hostEtc + "/resolv.conf", ""},
	} {
		k := fresh(t, false)
		put(t, k.Files, hostResolv, c.conf)
		if c.system != "" {
			put(t, k.Files, systemResolv, c.system)
		}
		if path, own := resolv(k.Files); path != c.path || string(own) != c.own {
			t.Errorf("%s: %s, %q", c.name, path, own)
		}
		if has := HasResolver(k.Files); has != (c.name != "none left" && c.name != "empty") {
			t.Errorf("%s: has a resolver: %v", c.name, has)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, k := range []Kubelet{fresh(t, true), fresh(t, false)} {
		name := "worker.yaml"
		if k.ControlPlane {
			name = "control-plane.yaml"
		}
		path, _ := resolv(k.Files)
		data, err := k.Config.encode(path, k.ControlPlane)
		must.NoError(t, err)
		if err := yaml.UnmarshalStrict(data, &kubeletv1.KubeletConfiguration{}); err != nil {
			t.Error(err)
		}
		// The one line that depends on the machine.
		data = bytes.Replace(data, []byte("failCgroupV1: true"), []byte("failCgroupV1: false"), 1)
		hosttest.Golden(t, name, data)
	}
}

// TestTheStoreOfContainerd: the kubelet measures the images in another directory too.
func TestTheStoreOfContainerd(t *testing.T) {
	for store, want := range map[string]int{"": 0, "/var/lib/containerd": 0, "/srv/containerd": 1} {
		added := len(Kubelet{Store: store}.mounted()) - len(directories)
		if added != want {
			t.Errorf("%q: %d more directories", store, added)
		}
	}
}
