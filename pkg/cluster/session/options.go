package session

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
)

// DefaultName is the default name of a cluster.
const DefaultName = "kube"

// Selection select a cluster. The zero value of a field stands for its default.
type Selection struct {
	Name     string          // part of the names of all nodes
	Provider provider.Opener // of the nodes; it has no default
	CacheDir string          // host images, and the files of the clusters; cache.Dir
}

// WithDefaults fills in the defaults and validates the name.
func (o Selection) WithDefaults() (Selection, error) {
	o.Name = cmp.Or(o.Name, DefaultName)
	o.CacheDir = cmp.Or(o.CacheDir, cache.Dir())
	return o, topology.BadName(o.Name)
}

// SharedDir holds the files that all hosts get. Containers of this machine mount it, so that a new
// bundle reaches running nodes.
func (o Selection) SharedDir() string { return filepath.Join(o.CacheDir, "clusters", o.Name) }

// BundleName is the name of the cluster's bundle in SharedDir.
const BundleName = "bundle.tar.zst"

// Bundle is the path of the cluster's bundle on this machine; "" if this machine does not have it.
func (o Selection) Bundle() string {
	path := filepath.Join(o.SharedDir(), BundleName)
	if !FileExists(path) {
		return ""
	}
	return path
}

// PrivateDir holds files that only this user may read. The nodes do not mount it.
func (o Selection) PrivateDir() string { return filepath.Join(o.CacheDir, "private", o.Name) }

// WritePrivate writes a file below PrivateDir, and returns its path.
func (o Selection) WritePrivate(name string, data []byte) (string, error) {
	path := filepath.Join(o.PrivateDir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, host.WriteFile(path, data, 0o600)
}

// ComponentsPath is the bundle of components from a checkout, before the nodes get it.
func (o Selection) ComponentsPath() string {
	return filepath.Join(o.CacheDir, "clusters", o.Name+"-programs.tar.zst")
}
