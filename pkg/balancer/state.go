package balancer

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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

// ReadState returns what the balancer of this host knows. The error is
// fs.ErrNotExist where there never was one, and where the record is damaged:
// control planes tell everything that is in it again.
func ReadState(files host.Files) (State, error) {
	s, err := stateRecord.Read(files)
	if err != nil {
		return State{}, errors.Join(fs.ErrNotExist, err)
	}
	return s, nil
}

var stateRecord = host.Record[State]{Path: stateFile, Valid: State.valid}

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

// Known is the step that writes the control planes to begin with if none are
// known.
func (b Balancer) Known() step.Step {
	return step.Step{
		Name: "know the control planes",
		Check: func(context.Context) (step.Diff, error) {
			files, err := b.known()
			if err != nil {
				return nil, err
			}
			return b.Files.Missing(files)
		},
		Apply: func(context.Context) error {
			files, err := b.known()
			if err != nil {
				return err
			}
			return b.Files.Put(files)
		},
	}
}

// known returns the file of the control planes to begin with, if it must be
// written.
func (b Balancer) known() ([]host.File, error) {
	begin, stale := b.seeded()
	if !stale {
		return nil, nil
	}
	file, err := record(stateFile, begin)
	return []host.File{file}, err
}

func writeState(files host.Files, s State) error {
	return stateRecord.Write(files, s)
}
