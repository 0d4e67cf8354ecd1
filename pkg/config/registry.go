package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
)

// registrySettings are the block "registry" of a file. A host that uses a registry saves these settings in a
// separate file, with the contents of the files that they name.
var registrySettings = sharing(Setting{
	Group: GroupRegistry, Verbs: loads | Push, Unsaved: true, Change: Freely,
}, []Setting{
	{
		Field: "registry.address", Flag: "registry", Env: "REG_PREFIX",
		Help: "private registry of the images: registry[:port][/prefix]", shown: mirror.Shown,
		check: on(registry),
	},
	{
		Field: "registry.username", Flag: "registry-username",
		Help: "user of the private registry (empty: that of Docker's configuration)",
	},
	{Field: "registry.password", Flag: "registry-password", Secret: true, NoFlag: true, Help: "password of that user"},
	{
		Field: "registry.passwordFile", Flag: "registry-password-file", Holds: "registry.password",
		Help: "file that contains the password of that user; - is standard input",
	},
	{
		Field: "registry.token", Flag: "registry-token", Secret: true, NoFlag: true,
		Help: "bearer token for the private registry, instead of user and password",
	},
	{
		Field: "registry.tokenFile", Flag: "registry-token-file", Holds: "registry.token",
		Help: "file that contains the bearer token; - is standard input",
	},
	{
		Field: "registry.ca", Flag: "registry-ca",
		Help: "file with the certificate authority of the private registry (empty: the system's)",
	},
	{
		Field: "registry.cert", Flag: "registry-cert",
		Help: "file with the client certificate for the private registry",
	},
	{Field: "registry.key", Flag: "registry-key", Help: "file with the key of the client certificate"},
	{
		Field: "registry.insecure", Flag: "insecure", Default: "false",
		Help: "accept any certificate of the private registry, and plain HTTP",
	},
})

func registry(s string) string {
	if _, err := reference.ParseNormalizedNamed(s + "/image"); err != nil {
		return "must be a registry without scheme, such as registry.example.com:5000 or registry.example.com/mirror"
	}
	return ""
}

// pairs names what of the registry is of no use without another setting.
func (r RegistrySettings) pairs(missing func(field, because string)) {
	for _, p := range []struct{ has, needs, hasField, needsField, give string }{
		{r.Username, r.Password, "registry.username", "registry.passwordFile",
			"--registry-password-file or " + EnvName("registry-password")},
		{r.Password, r.Username, "registry.password", "registry.username", "--registry-username"},
		{r.Cert, r.Key, "registry.cert", "registry.key", "--registry-key"},
		{r.Key, r.Cert, "registry.key", "registry.cert", "--registry-cert"},
	} {
		if p.has != "" && p.needs == "" {
			missing(p.needsField, p.hasField+" needs it; give "+p.give+", or the field in the file")
		}
	}
}

// mirrors names what the mirrors contradict: one another, the private registry, or the local registry of the
// cluster.
func (c Config) mirrors(wrong func(name, value, format string, args ...any)) {
	var seen []string
	for _, m := range c.RegistryMirrors {
		if slices.Contains(seen, m.Of) {
			wrong("registryMirrors", m.String(), "%s has two mirrors; name one", m.Of)
		}
		if c.LocalRegistry != 0 && m.Of == fmt.Sprintf("localhost:%d", c.LocalRegistry) {
			wrong("registryMirrors", m.String(),
				"%s is the registry of localRegistry, so it needs no mirror; omit this one", m.Of)
		}
		seen = append(seen, m.Of)
	}
	if len(seen) > 0 && c.Registry.Address != "" {
		wrong("registryMirrors", Joined(c.RegistryMirrors),
			"is not used with registry.address, which already serves the images of other registries; omit one of them")
	}
}

func isSite(u url.URL) bool {
	return (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.RawQuery == "" && u.Fragment == ""
}

// downloadSettings are where and how official images and files are pulled.
var downloadSettings = sharing(Setting{Group: GroupImages, Verbs: pulls, Change: Freely}, []Setting{
	{
		Field: "downloadMirror", Flag: "download-mirror",
		Help: "base URL of the release files of Kubernetes (empty: https://dl.k8s.io)", shown: mirror.Shown, as: site,
	},
	{
		Field: "cniMirror", Flag: "cni-mirror", Help: "base URL of the releases of the CNI plugins (empty: github.com)",
		shown: mirror.Shown, as: site,
	},
	{
		Field: "caFile", Flag: "ca-file",
		Help: "file with certificate authorities to trust for downloads, in addition to those of the system",
	},
	{
		Field: "stallTimeout", Flag: "stall-timeout", Default: "30s",
		Help: "time without data from a server of images after which the request is repeated",
	},
})

// site is a URL below which files are downloaded.
var site = kind("string", parseSite, urlText)

func parseSite(s string) (url.URL, error) {
	u, err := parseURL(strings.TrimSuffix(strings.TrimSpace(s), "/"))
	switch {
	case strings.Contains(s, "@"):
		return url.URL{}, errors.New("must have no user in it, which others could read")
	case err != nil || u != (url.URL{}) && !isSite(u):
		return url.URL{}, errors.New("must begin with https:// and a host (or http://, which is not encrypted)")
	}
	return u, nil
}

// mirrorSettings are where the pods of a host get their images from.
var mirrorSettings = []Setting{{
	Field: "registryMirrors", Flag: "registry-mirror", Group: GroupImages, Verbs: hosts | Pull, Shared: true,
	Change: OnCluster,
	Help:   "mirrors of registries, for pods and downloads: REGISTRY=[http://]HOST[/PREFIX], comma separated",
	shown:  mirror.Shown,
}, {
	Field: "localRegistry", Flag: "local-registry", Group: GroupContainers, Default: "0", Verbs: ClusterUp,
	Change: Freely,
	Help: "port on 127.0.0.1 of the engine's machine, such as 5000, for a registry of this cluster, " +
		"which also caches the images that nodes pull; 0: none",
	check: on(portOrNone),
}, {
	Field: "localRegistryCache", Flag: "local-registry-cache", Group: GroupContainers, Default: "10Gi",
	Verbs: ClusterUp, Change: Freely,
	Help: "disk space for the images of other registries in the registry of this cluster; " +
		"it removes the least recently used images first",
	as: amount,
}}
