package balancer

import (
	"errors"
	"io/fs"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const stateFile = StateDir + "/control-planes.json"

// State is the balancer's knowledge of the control planes. It is saved in a
// file, so that the host finds them after a reboot.
type State struct {
	ControlPlanes []ControlPlane `json:"controlPlanes"`
	// Told is set once a control plane has provided the list of all.
	Told bool `json:"told"`
}

// ControlPlane is the state of a control plane as this host sees it. A single
// control plane is not probed.
type ControlPlane struct {
	IP        string `json:"ip"`
	Joining   bool   `json:"joining,omitempty"` // it does not serve yet
	APIServer bool   `json:"apiServer"`         // last known readiness
	Etcd      bool   `json:"etcd"`
}

// Addresses lists the addresses of the control planes that are not joining.
func (s State) Addresses() []string {
	var all []string
	for _, c := range s.ControlPlanes {
		if !c.Joining {
			all = append(all, c.IP)
		}
	}
	return all
}

// ReadState reads the saved state. It returns fs.ErrNotExist if the file is
// missing or damaged, because control planes provide the content again.
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
		return errors.New("it contains no control plane")
	}
	for _, c := range s.ControlPlanes {
		if _, err := netip.ParseAddr(c.IP); err != nil {
			return err
		}
	}
	return nil
}

// Known is the step that writes the initial state if no control planes are
// known.
func (b Balancer) Known() step.Step { return b.Files.Step("know the control planes", b.known) }

// known returns the file of the initial state, if it must be written: it must
// not replace a list from a control plane.
func (b Balancer) known() ([]host.File, error) {
	begin, _ := ReadState(b.Files) // the zero State if there is none
	last := len(begin.ControlPlanes)
	for _, ip := range b.Seeds {
		if !slices.ContainsFunc(begin.ControlPlanes, func(c ControlPlane) bool { return c.IP == ip }) {
			begin.ControlPlanes = append(begin.ControlPlanes, ControlPlane{IP: ip})
		}
	}
	if begin.Told || len(begin.ControlPlanes) == last {
		return nil, nil
	}
	file, err := record(stateFile, begin)
	return []host.File{file}, err
}
