package local

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// MainSocket is the socket of the main Docker.
const MainSocket = "/run/docker.sock"

// MainDocker opens the main Docker on use, because it may not run yet when the
// plan is made.
func MainDocker() (*docker.Engine, error) { return docker.Open(MainSocket) }

// BootstrapDocker opens the bootstrap Docker, on use too.
func BootstrapDocker() (*docker.Engine, error) { return docker.Open(bootstrapdocker.Socket) }

// OpenDocker opens the Docker engine at a socket.
func OpenDocker(socket string) *docker.Engine {
	engine, err := docker.Open(socket)
	if err != nil {
		panic(err) // impossible: Open only parses the socket path
	}
	return engine
}
