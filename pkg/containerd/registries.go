package containerd

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// hostsDir is the directory of registry configurations, unless the user's config sets another.
const hostsDir = "/etc/containerd/certs.d"

// hostsFile is hosts.toml. Without Server, containerd asks the registry itself after Hosts.
type hostsFile struct {
	Server       string                `toml:"server,omitempty"`
	Capabilities []string              `toml:"capabilities,omitempty"`
	OverridePath bool                  `toml:"override_path,omitempty"`
	SkipVerify   bool                  `toml:"skip_verify,omitempty"`
	CA           string                `toml:"ca,omitempty"`
	Client       [][]string            `toml:"client,omitempty"`
	Header       map[string]string     `toml:"header,omitempty"`
	Hosts        map[string]mirrorHost `toml:"host"`
}

type mirrorHost struct {
	Capabilities []string `toml:"capabilities"`
	OverridePath bool     `toml:"override_path,omitempty"`
}

var pullOnly = []string{"pull", "resolve"}

// in returns the file for the registry of that name.
func (h hostsFile) in(dir, name string) (host.File, error) {
	data, err := toml.Marshal(h)
	return host.File{Path: path.Join(dir, name, "hosts.toml"), Data: data}, err
}

// RegistryFiles returns the files that make containerd use a private registry: for its own name, and for the upstream
// names of the images, which it has below its prefix. They contain secrets.
//
//	registry.k8s.io/coredns/coredns ──▶ https://registry.example.com/v2/k8s/coredns/coredns
func RegistryFiles(files host.Files, to *registry.Registry, upstreams []string) ([]host.File, error) {
	dir, err := registryDir(files)
	if err != nil {
		return nil, err
	}
	own := path.Join(dir, to.Host())
	all := to.CertificateFiles(own)
	for _, name := range append([]string{to.Host()}, upstreams...) {
		content := hostsFileOf(to, own)
		if name != to.Host() {
			content.Server, content.OverridePath = content.Server+path.Join("/v2", to.Prefix()), true
		}
		file, err := content.in(dir, name)
		if err != nil {
			return nil, err
		}
		all = append(all, file)
	}
	return all, nil
}

// hostsFileOf returns the hosts.toml of a private registry, whose certificates are in dir. It lists no other hosts, so
// that an answer of the registry is final. The table of hosts is present but empty, because containerd 1.7 ignores a
// file without one and asks the upstream.
// https://github.com/containerd/containerd/blob/v1.7.24/remotes/docker/config/hosts.go#L313-L318
// https://github.com/containerd/containerd/blob/v1.7.24/remotes/docker/config/hosts.go#L530-L535
func hostsFileOf(to *registry.Registry, dir string) hostsFile {
	h := hostsFile{
		Server: to.Scheme() + "://" + to.Host(), SkipVerify: to.Insecure,
		Capabilities: pullOnly, Hosts: map[string]mirrorHost{},
	}
	if len(to.CA) > 0 {
		h.CA = path.Join(dir, registry.CAFile)
	}
	if len(to.Cert) > 0 {
		h.Client = [][]string{{path.Join(dir, registry.CertFile), path.Join(dir, registry.KeyFile)}}
	}
	if header := to.Authorization(); header != "" {
		h.Header = map[string]string{"Authorization": header}
	}
	return h
}

// MirrorFiles returns the files that make containerd use mirrors. containerd sends the name of the registry as the
// parameter ns, so that one mirror can serve several registries.
// https://github.com/containerd/containerd/blob/v2.4.2/core/remotes/docker/resolver.go#L645-L651
//
//	docker.io/library/busybox ──▶ http://10.192.0.8:5000/v2/library/busybox/manifests/latest?ns=docker.io
func MirrorFiles(files host.Files, mirrors []mirror.Mirror) (all []host.File, err error) {
	if len(mirrors) == 0 {
		return nil, nil // also on a host whose config cannot be read
	}
	dir, err := registryDir(files)
	if err != nil {
		return nil, err
	}
	for _, m := range mirrors {
		file, err := mirrorFileOf(m).in(dir, m.Of)
		if err != nil {
			return nil, err
		}
		all = append(all, file)
	}
	return all, nil
}

func mirrorFileOf(m mirror.Mirror) hostsFile {
	one, at := mirrorHost{Capabilities: pullOnly}, m.URL()
	if m.Prefix != "" {
		one.OverridePath, at = true, at+path.Join("/v2", m.Prefix)
	}
	f := hostsFile{Hosts: map[string]mirrorHost{at: one}}
	if name, _, _ := strings.Cut(m.Of, ":"); name == "localhost" {
		// The image was pushed on another machine, so localhost on this host does not have it.
		f.Server = m.URL()
	}
	return f
}

// registryDir returns the first directory in containerd's config_path.
func registryDir(files host.Files) (string, error) {
	data, err := currentConfig(files)
	if err != nil {
		return "", err
	}
	c, err := parseConfig(data)
	if err != nil {
		return "", err
	}
	dirs, _ := c.get(c.registry("config_path")...).(string)
	if all := filepath.SplitList(dirs); len(all) > 0 {
		return all[0], nil
	}
	return hostsDir, nil
}
