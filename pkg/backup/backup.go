// Package backup is the file format of a backup of a cluster: what another host needs to become the control plane
// of the cluster. Ordinary tools open the file: `age -d -i KEY FILE | tar --zstd -t`.
//
//	age (not with --plain)
//	└── zstd
//	    └── tar
//	        ├── files/etc/kubernetes/pki/ca.key ...   files of the host
//	        ├── etcd/000000, etcd/000001 ...          the parts of etcd's snapshot
//	        └── manifest.json                         the last entry: the digest of each entry before
//
// etcd does not tell the size of its snapshot in advance, and tar needs it, so the snapshot is stored in parts.
// Write reads the file again before the file gets its name. All commands use Read, so that a file that one of them
// accepts is accepted by all.
package backup

import (
	"io/fs"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// format is the version of the format that this program writes and reads.
const format = 1

const (
	filesPrefix  = "files"
	partsPrefix  = "etcd/"
	manifestName = "manifest.json"

	// partSize is the size of a part of the snapshot in bytes.
	partSize = 4 << 20
	// largestFile is more than any file of the host has in bytes. Manifests of users are the largest files.
	largestFile = 32 << 20
)

// Origin states where and when a backup was made.
type Origin struct {
	Created    time.Time `json:"created"`
	Cluster    string    `json:"cluster"` // hash of the certificate authority: sha256:<hex>
	Host       string    `json:"host"`
	Address    string    `json:"address"`
	Program    string    `json:"program"`    // version of kube-bootstrap
	Kubernetes string    `json:"kubernetes"` // version
	Etcd       string    `json:"etcd"`       // version
	Hosts      []Host    `json:"hosts"`      // of the cluster
}

// Host is a host of the cluster.
type Host struct {
	Name         string `json:"name"`
	Address      string `json:"address"`
	ControlPlane bool   `json:"controlPlane,omitempty"`
}

// Manifest is the last entry of a backup.
type Manifest struct {
	Format int `json:"format"`
	Origin
	Entries []Entry `json:"entries"`
}

// Entry is an entry of the archive.
type Entry struct {
	Name   string      `json:"name"`
	Mode   fs.FileMode `json:"mode"`
	Size   int64       `json:"size"`
	SHA256 string      `json:"sha256"`
}

// Contents are the contents of a backup without etcd's snapshot.
type Contents struct {
	Manifest Manifest
	Files    []host.File
}

// File returns the content of a file of the host, or nil if the backup does not contain it.
func (c Contents) File(path string) []byte {
	i := slices.IndexFunc(c.Files, func(f host.File) bool { return f.Path == path })
	if i < 0 {
		return nil
	}
	return c.Files[i].Data
}
