package agent

import (
	"fmt"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	stateDir   = host.StateDir + "/agent"
	maxRepairs = 20
)

// Repair is a repair by the agent, successful or not.
type Repair struct {
	At      time.Time `json:"at"`
	Step    string    `json:"step"`
	Changes []string  `json:"changes"`
	Seconds float64   `json:"seconds"`
	Error   string    `json:"error,omitempty"`
}

// Repairs returns the last repairs, oldest first; none if the record is damaged.
func Repairs(files host.Files) []Repair {
	all, _ := repairs.Read(files)
	return all
}

var repairs = host.Record[[]Repair]{Path: stateDir + "/repairs.json"}

func note(files host.Files, r Repair) error {
	all := append(Repairs(files), r)
	return repairs.Write(files, all[max(0, len(all)-maxRepairs):])
}

type recorder struct {
	files host.Files
	log   func(string)

	mu     sync.Mutex
	logged map[string]string // the last error by step, which is logged once
}

func (n *recorder) record(repair Repair, err error) {
	if err != nil {
		repair.Error = err.Error()
		n.log(fmt.Sprintf("repair failed: %v", err))
	} else {
		n.log(fmt.Sprintf("repaired: %s: %s, in %.1fs", repair.Step, step.Diff(repair.Changes), repair.Seconds))
	}
	n.mu.Lock()
	err = note(n.files, repair)
	n.mu.Unlock()
	n.logError("record the repair", err)
}

// logError logs an error, unless the last error of the same name was equal.
func (n *recorder) logError(name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil:
		delete(n.logged, name)
	case n.logged[name] != err.Error():
		n.logged[name] = err.Error()
		n.log(fmt.Sprintf("%s: %v", name, err))
	}
}
