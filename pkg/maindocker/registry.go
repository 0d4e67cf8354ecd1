package maindocker

import (
	"path"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// RegistryFiles returns the certificate files for a private registry. Docker
// reads them on each access. Credentials belong to Docker's clients.
func RegistryFiles(to *registry.Registry) []host.File {
	dir := path.Join("/etc/docker/certs.d", to.Host())
	var files []host.File
	if len(to.CA) > 0 {
		files = append(files, host.File{Path: path.Join(dir, "ca.crt"), Data: to.CA, Mode: 0o644})
	}
	if len(to.Cert) > 0 {
		files = append(files, host.File{Path: path.Join(dir, "client.cert"), Data: to.Cert, Mode: 0o644},
			host.File{Path: path.Join(dir, "client.key"), Data: to.Key})
	}
	return files
}
