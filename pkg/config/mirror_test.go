package config

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
)

func mirrorsOf(t *testing.T, text string) []mirror.Mirror {
	t.Helper()
	all, err := mirror.ParseList(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestMirrorsThatContradict(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"": func(c *Config) {
			c.RegistryMirrors = mirrorsOf(t, "docker.io=a.test,quay.io=a.test")
		},
		"docker.io has two mirrors": func(c *Config) {
			c.RegistryMirrors = mirrorsOf(t, "docker.io=a.test,docker.io=b.test")
		},
		"not used with registry.address": func(c *Config) {
			c.RegistryMirrors, c.Registry.Address = mirrorsOf(t, "docker.io=a.test"), "b.test"
		},
		"localhost:5001 is the registry": func(c *Config) {
			c.RegistryMirrors, c.LocalRegistry = mirrorsOf(t, "localhost:5001=a.test"), 5001
		},
		"must be a port":      func(c *Config) { c.LocalRegistry = 70000 },
		"the default is 10Gi": func(c *Config) { c.LocalRegistryCache = resource.Quantity{} },
	} {
		c := Default()
		change(&c)
		errs := c.Validate("")
		if text := errs.ToAggregate(); want == "" && len(errs) > 0 || want != "" &&
			(len(errs) != 1 || !strings.Contains(text.Error(), want)) {
			t.Errorf("%q: %v", want, errs)
		}
	}
}
