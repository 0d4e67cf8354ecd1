package agent

import (
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

const (
	stateDir    = host.StateDir + "/agent"
	repairsFile = stateDir + "/repairs.json"
	keptRepairs = 20
)

// Repair is something that the agent has repaired, or tried to.
type Repair struct {
	At      time.Time `json:"at"`
	Step    string    `json:"step"`
	Changes []string  `json:"changes"`
	Seconds float64   `json:"seconds"`
	Error   string    `json:"error,omitempty"`
}

// Repairs returns the last repairs, oldest first. A damaged record is none.
func Repairs(files host.Files) []Repair {
	all, _ := repairs.Read(files)
	return all
}

var repairs = host.Record[[]Repair]{Path: repairsFile}

func note(files host.Files, r Repair) error {
	all := append(Repairs(files), r)
	return repairs.Write(files, all[max(0, len(all)-keptRepairs):])
}
