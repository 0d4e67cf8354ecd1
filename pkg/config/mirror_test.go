package config

import (
	"strings"
	"testing"
)

func TestMirrorsThatContradict(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"":                               func(c *Config) { c.RegistryMirrors = []string{"docker.io=a.test", "quay.io=a.test"} },
		"docker.io has two mirrors":      func(c *Config) { c.RegistryMirrors = []string{"docker.io=a.test", "docker.io=b.test"} },
		"not used with registry.address": func(c *Config) { c.RegistryMirrors, c.Registry.Address = []string{"docker.io=a.test"}, "b.test" },
		"localhost:5001 is the registry": func(c *Config) { c.RegistryMirrors, c.LocalRegistry = []string{"localhost:5001=a.test"}, 5001 },
		"must be a port":                 func(c *Config) { c.LocalRegistry = 70000 },
		"must be an amount":              func(c *Config) { c.LocalRegistryCache = "0" },
	} {
		c := Default()
		change(&c)
		errs := c.Validate("")
		if text := errs.ToAggregate(); want == "" && len(errs) > 0 || want != "" && (len(errs) != 1 || !strings.Contains(text.Error(), want)) {
			t.Errorf("%q: %v", want, errs)
		}
	}
}
