package containerd

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestConfigThatContainerdDoesNotUse asks the containerd of this machine.
func TestConfigThatContainerdDoesNotUse(t *testing.T) {
	imported := filepath.Join(t.TempDir(), "other.toml")
	must.Write(t, imported, "version = 2\n[plugins.'io.containerd.grpc.v1.cri']\nsandbox_image = "+
		"'example.com/pause:1'\n")
	disabled := filepath.Join(t.TempDir(), "disabled.toml")
	must.Write(t, disabled, "version = 2\ndisabled_plugins = ['io.containerd.grpc.v1.cri']\n")
	for config, want := range map[string]string{
		"":                             "",
		"disabled_plugins = ['cri']\n": "",
		"version = 2\nroot = '/srv/containerd'\n[plugins.'io.containerd.grpc.v1.cri'.cni]\nbin_dir = '/usr/lib/cni'\n": "",
		"version = 2\nimports = ['" + imported +
			"']\n": "sandbox",
		"version = 2\nimports = ['" + disabled + "']\n":                           "CRI is not disabled",
		"version = 2\n[grpc]\naddress = '/run/other.sock'\n":                      "serves at /run/other.sock",
		"version = 2\n[plugins.'io.containerd.grpc.v1.cri']\nsandbox_image = 7\n": "",
		"version = 2\n[debug]\nlevel = 7\n":                                       "would not start with it",
	} {
		cri := CRI{Pods: Pods{Files: host.Files{Root: t.TempDir()}, Socket: DefaultSocket}, SandboxImage: pause}
		must.Write(t, cri.Pods.Files.Path(configPath), config)
		err := cri.ConfigProblems(t.Context())
		problems := step.Problems(err)
		if want == "" && err != nil || want != "" &&
			(len(problems) != 1 || problems[0].Name != "containerd-config" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", config, err, want)
		}
	}
}

func TestImportsFromAnotherDirectory(t *testing.T) {
	got, err := withAbsoluteImports([]byte("imports = ['conf.d/*.toml', '/etc/other.toml']\n"))
	must.NoError(t, err)
	if want := "imports = ['/etc/containerd/conf.d/*.toml', '/etc/other.toml']\n"; string(got) != want {
		t.Errorf("got %s", got)
	}
}
