package containerd

import (
	"fmt"
	"path"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// hostsDir is the directory of registry configurations, unless the user's
// config sets another one.
const hostsDir = "/etc/containerd/certs.d"

// hostsFile is hosts.toml. It lists no other hosts, so that an answer of the
// private registry is final. The table of hosts is present but empty, because
// containerd 1.7 ignores a file without one and asks the upstream.
type hostsFile struct {
	Server       string            `toml:"server"`
	Capabilities []string          `toml:"capabilities"`
	OverridePath bool              `toml:"override_path,omitempty"`
	SkipVerify   bool              `toml:"skip_verify,omitempty"`
	CA           string            `toml:"ca,omitempty"`
	Client       [][]string        `toml:"client,omitempty"`
	Header       map[string]string `toml:"header,omitempty"`
	Mirrors      map[string]string `toml:"host"`
}

// RegistryFiles returns the files that make containerd use a private
// registry: for its own name, and for the upstream names of the images, which
// it has below its prefix. They contain secrets.
//
//	registry.k8s.io/coredns/coredns ──▶ https://registry.example.com/v2/k8s/coredns/coredns
func RegistryFiles(files host.Files, to *registry.Registry, upstreams []string) ([]host.File, error) {
	dir, err := registryDir(files)
	if err != nil {
		return nil, err
	}
	common, all := hostsFileOf(to, path.Join(dir, to.Host()))
	for _, name := range append([]string{to.Host()}, upstreams...) {
		one := common
		if name != to.Host() {
			one.Server, one.OverridePath = common.Server+path.Join("/v2", to.Prefix()), true
		}
		data, err := toml.Marshal(one)
		if err != nil {
			return nil, err
		}
		all = append(all, host.File{Path: path.Join(dir, name, "hosts.toml"), Data: data})
	}
	return all, nil
}

// hostsFileOf returns the hosts.toml of a registry, and the files in dir that
// it names.
func hostsFileOf(to *registry.Registry, dir string) (h hostsFile, files []host.File) {
	h = hostsFile{Server: to.Scheme() + "://" + to.Host(), SkipVerify: to.Insecure, Mirrors: map[string]string{}, Capabilities: []string{"pull", "resolve"}}
	if len(to.CA) > 0 {
		h.CA = path.Join(dir, registry.CAFile)
	}
	if len(to.Cert) > 0 {
		h.Client = [][]string{{path.Join(dir, registry.CertFile), path.Join(dir, registry.KeyFile)}}
	}
	if header := to.Authorization(); header != "" {
		h.Header = map[string]string{"Authorization": header}
	}
	return h, to.CertificateFiles(dir)
}

// registryDir returns the first directory in containerd's config_path.
func registryDir(files host.Files) (string, error) {
	data, err := currentConfig(files)
	if err != nil {
		return "", err
	}
	c, err := parseConfig(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", configPath, err)
	}
	return c.hostsDir(), nil
}

func (c *configFile) registryTable() []string { return append(c.cri("images"), "registry") }

func (c *configFile) hostsDir() string {
	dirs, _ := c.get(append(c.registryTable(), "config_path")...).(string)
	if all := filepath.SplitList(dirs); len(all) > 0 {
		return all[0]
	}
	return hostsDir
}

// setHosts sets config_path.
func (c *configFile) setHosts() error {
	table := c.registryTable()
	if now, _ := c.get(append(table, "config_path")...).(string); now != "" {
		return nil
	}
	for _, old := range []string{"mirrors", "configs"} {
		if set, _ := c.get(append(table, old)...).(map[string]any); len(set) > 0 {
			return oldRegistryTable(old)
		}
	}
	c.set(hostsDir, append(table, "config_path")...)
	return nil
}
