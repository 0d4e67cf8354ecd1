package testhost

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

func registryContainer(t *testing.T, made config.Made) docker.Container {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kube-bootstrap")
	if err := os.WriteFile(binary, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := localRegistry{&session.Session{Options: session.Options{Name: "k"}}, binary, netip.MustParsePrefix("10.192.0.0/16"), RegistryOf(made)}
	c, _, err := r.container()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRegistryHasItsSettings(t *testing.T) {
	for want, given := range map[string]map[string]string{
		"--name localhost:5001":                                           {"localRegistry": "5001"},
		"--name localhost:5001 --cache 2147483648":                        {"localRegistry": "5001", "localRegistryCache": "2Gi"},
		"--name localhost:5001 --mirror docker.io=a.test --cache 5000000": {"localRegistry": "5001", "localRegistryCache": "5M", "registryMirrors": "docker.io=a.test"},
	} {
		c := registryContainer(t, config.Made{Given: given})
		if got := strings.Join(c.Command[2:], " "); got != want {
			t.Errorf("%v: %q, want %q", given, got, want)
		}
	}
}
