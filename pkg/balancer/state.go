package balancer

import (
	"fmt"
	"io/fs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

const stateFile = StateDir + "/control-planes.json"

// State is what the balancer of a host knows. It is kept in a file, so that a
// host finds its control planes again after a reboot, whichever are alive then.
type State struct {
	ControlPlanes []ControlPlane `json:"controlPlanes"`
	// Told says that a control plane has named all of them.
	Told bool `json:"told"`
}

// ControlPlane is a control plane as this host sees it. One that is alone is
// not asked how it is: there is no other to turn to.
type ControlPlane struct {
	IP        string `json:"ip"`
	Joining   bool   `json:"joining,omitempty"` // it has yet to become one
	APIServer bool   `json:"apiServer"`         // it is ready, as far as is known
	Etcd      bool   `json:"etcd"`
}

// Addresses lists the control planes' addresses, without those that are yet to
// become one.
func (s State) Addresses() []string {
	var all []string
	for _, c := range s.ControlPlanes {
		if !c.Joining {
			all = append(all, c.IP)
		}
	}
	return all
}

// ReadState returns what the balancer of this host knows; the error is
// fs.ErrNotExist where there never was one.
func ReadState(files host.Files) (State, error) {
	var s State
	known, err := files.Recall(stateFile, &s)
	switch {
	case err != nil:
		return s, fmt.Errorf("%w; remove the file and run the same command again", err)
	case !known:
		return s, fs.ErrNotExist
	}
	return s, nil
}

func writeState(files host.Files, s State) error {
	return files.Remember(stateFile, s)
}
