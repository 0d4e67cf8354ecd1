package testhost

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

func registryContainer(t *testing.T, made config.ClusterRecord) docker.Container {
	t.Helper()
	cfg, err := made.Config()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "kube-bootstrap")
	if err := os.WriteFile(binary, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := localRegistry{Setup{
		Cluster: clusterAt(t, &docker.Engine{Address: docker.DefaultAddress}, ""),
		Subnet:  netip.MustParsePrefix("10.192.0.0/16"),
		Binary:  binary, Registry: RegistryOf(cfg),
	}}
	c, _, err := r.container(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRegistryHasItsSettings(t *testing.T) {
	for want, given := range map[string]map[string]string{
		"--name localhost:5001": {"localRegistry": "5001"},
		"--name localhost:5001 --cache 2147483648": {"localRegistry": "5001",
			"localRegistryCache": "2Gi"},
		"--name localhost:5001 --mirror docker.io=a.test --cache 5000000": {"localRegistry": "5001",
			"localRegistryCache": "5M", "registryMirrors": "docker.io=a.test"},
	} {
		c := registryContainer(t, config.ClusterRecord{Given: given})
		if got := strings.Join(c.Command[2:], " "); got != want {
			t.Errorf("%v: %q, want %q", given, got, want)
		}
	}
}

func TestRegistryHasTheProxiesOfThisMachine(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		t.Setenv(name, "")
	}
	for _, c := range []struct{ set, want []string }{
		{nil, nil},
		{[]string{"HTTPS_PROXY=http://me:secret@proxy.test:3128", "NO_PROXY=10.0.0.0/8"},
			[]string{"HTTPS_PROXY=http://me:secret@proxy.test:3128", "NO_PROXY=10.0.0.0/8"}},
		{[]string{"http_proxy=me:secret@proxy.test:3128"}, []string{"HTTP_PROXY=http://me:secret@proxy.test:3128"}},
		{[]string{"HTTP_PROXY=http://127.0.0.1:3128", "HTTPS_PROXY=localhost:3128", "no_proxy=a.test"},
			[]string{"NO_PROXY=a.test"}},
		{[]string{"HTTPS_PROXY=http://[::1]:3128"}, nil},
	} {
		t.Run(fmt.Sprint(len(c.set), " variables"), func(t *testing.T) {
			for _, one := range c.set {
				name, value, _ := strings.Cut(one, "=")
				t.Setenv(name, value)
			}
			if got := registryContainer(t, config.ClusterRecord{}).Env[2:]; !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
