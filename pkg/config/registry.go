package config

import (
	"github.com/distribution/reference"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
)

// registrySettings are the block "registry" of a file. A host that uses a
// registry saves these settings in a separate file, with the contents of the files
// that they name.
var registrySettings = sharing(Setting{Group: GroupRegistry, Verbs: loads | Push, Once: true, Change: Freely}, []Setting{{
	Field: "registry.address", Flag: "registry", Env: "REG_PREFIX",
	Help: "private registry that images are taken from: registry[:port][/prefix]",
	at:   text(func(c *Config) *string { return &c.Registry.Address }), shown: mirror.Shown, check: registry,
}, {
	Field: "registry.username", Flag: "registry-username",
	Help: "user of the private registry (empty: as Docker's configuration says)",
	at:   text(func(c *Config) *string { return &c.Registry.Username }),
}, {
	Field: "registry.password", Flag: "registry-password", Secret: true, NoFlag: true,
	Help: "password of that user",
	at:   text(func(c *Config) *string { return &c.Registry.Password }),
}, {
	Field: "registry.passwordFile", Flag: "registry-password-file", Holds: "registry.password",
	Help: "file that holds the password of that user, - for standard input",
	at:   text(func(c *Config) *string { return &c.Registry.PasswordFile }),
}, {
	Field: "registry.token", Flag: "registry-token", Secret: true, NoFlag: true,
	Help: "bearer token for the private registry, instead of user and password",
	at:   text(func(c *Config) *string { return &c.Registry.Token }),
}, {
	Field: "registry.tokenFile", Flag: "registry-token-file", Holds: "registry.token",
	Help: "file that holds the bearer token, - for standard input",
	at:   text(func(c *Config) *string { return &c.Registry.TokenFile }),
}, {
	Field: "registry.ca", Flag: "registry-ca",
	Help: "file with the certificate authority of the private registry (empty: the system's)",
	at:   text(func(c *Config) *string { return &c.Registry.CA }),
}, {
	Field: "registry.cert", Flag: "registry-cert",
	Help: "file with the client certificate to show to the private registry",
	at:   text(func(c *Config) *string { return &c.Registry.Cert }),
}, {
	Field: "registry.key", Flag: "registry-key",
	Help: "file with the key of the client certificate",
	at:   text(func(c *Config) *string { return &c.Registry.Key }),
}, {
	Field: "registry.insecure", Flag: "insecure", Default: "false",
	Help: "trust the private registry with any certificate, or with plain HTTP",
	at:   yesNo(func(c *Config) *bool { return &c.Registry.Insecure }),
}})

func registry(s string) string {
	if _, err := reference.ParseNormalizedNamed(s + "/image"); err != nil {
		return "must be a registry without scheme, such as registry.example.com:5000 or registry.example.com/mirror"
	}
	return ""
}

// pairs names what of the registry is of no use without another setting.
func (r Registry) pairs(missing func(field, because string)) {
	for _, p := range []struct{ has, needs, hasField, needsField, give string }{
		{r.Username, r.Password, "registry.username", "registry.passwordFile", "--registry-password-file or " + EnvName("registry-password")},
		{r.Password, r.Username, "registry.password", "registry.username", "--registry-username"},
		{r.Cert, r.Key, "registry.cert", "registry.key", "--registry-key"},
		{r.Key, r.Cert, "registry.key", "registry.cert", "--registry-cert"},
	} {
		if p.has != "" && p.needs == "" {
			missing(p.needsField, p.hasField+" needs it; give "+p.give+", or the field in the file")
		}
	}
}
