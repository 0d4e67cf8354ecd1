package containerd

import (
	"path"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// mirrorFile is the hosts.toml of a registry with a mirror. Without Server,
// containerd asks the registry itself for what the mirror does not have, or while
// the mirror does not answer.
type mirrorFile struct {
	Server string                `toml:"server,omitempty"`
	Hosts  map[string]mirrorHost `toml:"host"`
}

type mirrorHost struct {
	Capabilities []string `toml:"capabilities"`
	OverridePath bool     `toml:"override_path,omitempty"`
}

// MirrorFiles returns the files that make containerd use mirrors. containerd
// sends the name of the registry as the parameter ns, so that one mirror can
// serve several registries.
//
//	docker.io/library/busybox ──▶ http://10.192.0.8:5000/v2/library/busybox/manifests/latest?ns=docker.io
func MirrorFiles(files host.Files, mirrors []mirror.Mirror) ([]host.File, error) {
	if len(mirrors) == 0 {
		return nil, nil // also on a host whose config cannot be read
	}
	dir, err := registryDir(files)
	if err != nil {
		return nil, err
	}
	var all []host.File
	for _, m := range mirrors {
		data, err := toml.Marshal(mirrorFileOf(m))
		if err != nil {
			return nil, err
		}
		all = append(all, host.File{Path: path.Join(dir, m.Of, "hosts.toml"), Data: data})
	}
	return all, nil
}

func mirrorFileOf(m mirror.Mirror) mirrorFile {
	one, at := mirrorHost{Capabilities: []string{"pull", "resolve"}}, m.URL()
	if m.Prefix != "" {
		one.OverridePath, at = true, at+path.Join("/v2", m.Prefix)
	}
	f := mirrorFile{Hosts: map[string]mirrorHost{at: one}}
	if name, _, _ := strings.Cut(m.Of, ":"); name == "localhost" {
		f.Server = m.URL() // on a host, localhost is another machine than where the image was pushed
	}
	return f
}
