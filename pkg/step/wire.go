package step

import "encoding/json"

// wire is the JSON form of an Event, one line each. --progress json writes
// it, and `cluster` reads it from the kube-bootstrap that it runs on a node.
type wire struct {
	Host string `json:"host,omitempty"`
	fields
	Error string `json:"error,omitempty"`
	// Problems are the problems that Error contains.
	Problems []*Problem `json:"problems,omitempty"`
}

// fields is an Event without its methods.
type fields Event

// reportedError is an error that another process reported as JSON.
type reportedError struct {
	text     string
	problems []*Problem
}

func (t *reportedError) Error() string { return t.text }

func (t *reportedError) Unwrap() []error {
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
	w := wire{fields: fields(e), Host: host}
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
	*e = Event(w.fields)
	if w.Error != "" {
		e.Err = &reportedError{w.Error, w.Problems}
	}
	return nil
}
