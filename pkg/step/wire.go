package step

import (
	"encoding/json"
	"errors"
	"time"
)

// wire is an Event as one line of JSON: what --progress json writes, and what
// a program reads that runs another on a host.
type wire struct {
	At      time.Time `json:"at"`
	Row     int       `json:"row"`
	Step    string    `json:"step"`
	Kind    Kind      `json:"kind"`
	Message string    `json:"message,omitempty"`
	Bytes   int64     `json:"bytes,omitempty"`
	Total   int64     `json:"total,omitempty"`
	Diff    Diff      `json:"diff,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// MarshalJSON writes Err as its text.
func (e Event) MarshalJSON() ([]byte, error) {
	w := wire{At: e.At, Row: e.Row, Step: e.Step, Kind: e.Kind, Message: e.Message, Bytes: e.Bytes, Total: e.Total, Diff: e.Diff}
	if e.Err != nil {
		w.Error = e.Err.Error()
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote; of Err only the text is left.
func (e *Event) UnmarshalJSON(data []byte) error {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*e = Event{At: w.At, Row: w.Row, Step: w.Step, Kind: w.Kind, Message: w.Message, Bytes: w.Bytes, Total: w.Total, Diff: w.Diff}
	if w.Error != "" {
		e.Err = errors.New(w.Error)
	}
	return nil
}
