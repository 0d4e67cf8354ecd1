package local

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// MainSocket is the socket of the main Docker.
const MainSocket = "/run/docker.sock"

// MainDocker opens the main Docker on use, because it may not run yet when the
// plan is made.
func MainDocker() *docker.Engine { return docker.Open(MainSocket) }

// BootstrapDocker opens the bootstrap Docker, on use too.
func BootstrapDocker() *docker.Engine { return docker.Open(bootstrapdocker.Socket) }
