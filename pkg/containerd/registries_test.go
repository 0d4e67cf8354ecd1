package containerd

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestRegistryFiles(t *testing.T) {
	to := &registry.Registry{Address: "reg.example.com:5000/k8s", CA: []byte("pem")}
	to.Auth.Username, to.Auth.Password = "me", "secret"
	files, err := RegistryFiles(host.Files{Root: t.TempDir()}, to, []string{"registry.k8s.io"})
	must.NoError(t, err)
	want := map[string]string{
		"/etc/containerd/certs.d/reg.example.com:5000/ca.crt": "pem",
		"/etc/containerd/certs.d/reg.example.com:5000/hosts.toml": `server = 'https://reg.example.com:5000'
capabilities = ['pull', 'resolve']
ca = '/etc/containerd/certs.d/reg.example.com:5000/ca.crt'

[header]
Authorization = 'Basic bWU6c2VjcmV0'

[host]
`,
		"/etc/containerd/certs.d/registry.k8s.io/hosts.toml": `server = 'https://reg.example.com:5000/v2/k8s'
capabilities = ['pull', 'resolve']
override_path = true
ca = '/etc/containerd/certs.d/reg.example.com:5000/ca.crt'

[header]
Authorization = 'Basic bWU6c2VjcmV0'

[host]
`,
	}
	if len(files) != len(want) {
		t.Errorf("%d files", len(files))
	}
	for _, f := range files {
		if string(f.Data) != want[f.Path] {
			t.Errorf("%s:\n%s", f.Path, f.Data)
		}
		if strings.Contains(string(f.Data), "Basic") && f.Mode != 0 {
			t.Errorf("%s: others may read the password", f.Path)
		}
	}
}

// TestRegistryDirectory: the owner's own is kept, and what containerd would
// refuse to start with is told before.
func TestRegistryDirectory(t *testing.T) {
	for _, c := range []struct{ config, dir, changed, problem string }{
		{"", hostsDir, hostsDir, ""},
		{"version = 2\n[plugins.'io.containerd.grpc.v1.cri'.registry]\nconfig_path = '/etc/own:/etc/other'\n",
			"/etc/own", "", ""},
		{"version = 3\n[plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '/etc/own'\n",
			"/etc/own", "", ""},
		{"version = 3\n", hostsDir, hostsDir, ""},
		{"version = 2\n[plugins.'io.containerd.grpc.v1.cri'.registry.mirrors.'docker.io']\nendpoint = ['https://m']\n",
			hostsDir, "", "containerd-registry"},
	} {
		onHost := host.Files{Root: t.TempDir()}
		must.Write(t, onHost.Path(configPath), c.config)
		if dir, err := registryDir(onHost); err != nil || dir != c.dir {
			t.Errorf("%q: %s %v, want %s", c.config, dir, err, c.dir)
		}
		_, diff, err := mergeConfig([]byte(c.config), 2, wanted{Registry: true})
		if problems := step.Problems(err); c.problem != "" && (len(problems) != 1 || problems[0].Name != c.problem) ||
			c.problem == "" && err != nil {
			t.Errorf("%q: %v", c.config, err)
		}
		if err == nil && strings.Contains(diff.String(), "config_path = "+hostsDir) != (c.changed != "") {
			t.Errorf("%q: %v", c.config, diff)
		}
	}
}
