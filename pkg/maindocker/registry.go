package maindocker

import (
	"path"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// RegistryFiles returns the certificate files for a private registry. Docker
// reads them on each access. Credentials belong to Docker's clients.
func RegistryFiles(to *registry.Registry) []host.File {
	return to.CertificateFiles(path.Join("/etc/docker/certs.d", to.Host()))
}
