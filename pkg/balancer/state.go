package balancer

import (
	"errors"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

const stateFile = StateDir + "/control-planes.json"

var stateRecord = host.Record[State]{Path: stateFile, Valid: State.valid}

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

func (s State) valid() error {
	if len(s.ControlPlanes) == 0 {
		return errors.New("it names no control plane")
	}
	for _, c := range s.ControlPlanes {
		if _, err := netip.ParseAddr(c.IP); err != nil {
			return err
		}
	}
	return nil
}

// ReadState returns what the balancer of this host knows. An error that is
// host.Lost says that nothing is known.
func ReadState(files host.Files) (State, error) { return stateRecord.Read(files) }

func writeState(files host.Files, s State) error { return stateRecord.Write(files, s) }
