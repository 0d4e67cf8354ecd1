package step

import (
	"encoding/json"
	"time"
)

// wire is the JSON form of an Event, one line each. --progress json writes
// it, and `cluster` reads it from the kube-bootstrap that it runs on a node.
type wire struct {
	At      time.Time `json:"at"`
	Stage   int       `json:"stage"`
	Stages  int       `json:"stages,omitempty"`
	Host    string    `json:"host,omitempty"`
	Step    string    `json:"step"`
	Kind    Kind      `json:"kind"`
	Message string    `json:"message,omitempty"`
	Bytes   int64     `json:"bytes,omitempty"`
	Total   int64     `json:"total,omitempty"`
	Doing   []string  `json:"doing,omitempty"`
	Diff    Diff      `json:"diff,omitempty"`
	Error   string    `json:"error,omitempty"`
	// Problems are the problems that Error contains.
	Problems []*Problem `json:"problems,omitempty"`
}

// told is an error that another process reported as JSON.
type told struct {
	text     string
	problems []*Problem
}

func (t *told) Error() string { return t.text }

func (t *told) Unwrap() []error {
	var all []error
	for _, p := range t.problems {
		all = append(all, p)
	}
	return all
}

// MarshalJSON encodes Err as its text and its problems, and adds the host that Step
// names.
func (e Event) MarshalJSON() ([]byte, error) {
	host, _ := e.Host()
	w := wire{At: e.At, Stage: e.Stage, Stages: e.Stages, Host: host, Step: e.Step, Kind: e.Kind, Message: e.Message, Bytes: e.Bytes, Total: e.Total, Doing: e.Doing, Diff: e.Diff}
	if e.Err != nil {
		w.Error, w.Problems = e.Err.Error(), Problems(e.Err)
	}
	return json.Marshal(w)
}

// UnmarshalJSON decodes the output of MarshalJSON. Err then only contains the
// text and the problems.
func (e *Event) UnmarshalJSON(data []byte) error {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*e = Event{At: w.At, Stage: w.Stage, Stages: w.Stages, Step: w.Step, Kind: w.Kind, Message: w.Message, Bytes: w.Bytes, Total: w.Total, Doing: w.Doing, Diff: w.Diff}
	if w.Error != "" {
		e.Err = &told{w.Error, w.Problems}
	}
	return nil
}
