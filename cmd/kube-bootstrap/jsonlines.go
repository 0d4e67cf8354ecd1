package main

import (
	"encoding/json"
	"io"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// jsonEvent is one line of --progress json.
type jsonEvent struct {
	At      time.Time `json:"at"`
	Row     int       `json:"row"`
	Step    string    `json:"step"`
	Kind    step.Kind `json:"kind"`
	Message string    `json:"message,omitempty"`
	Bytes   int64     `json:"bytes,omitempty"`
	Total   int64     `json:"total,omitempty"`
	Diff    step.Diff `json:"diff,omitempty"`
	Error   string    `json:"error,omitempty"`
}

type jsonLines struct{ out *json.Encoder }

func newJSONLines(out io.Writer) jsonLines { return jsonLines{json.NewEncoder(out)} }

func (r jsonLines) event(e step.Event) {
	line := jsonEvent{At: e.At, Row: e.Row, Step: e.Step, Kind: e.Kind, Message: e.Message, Bytes: e.Bytes, Total: e.Total, Diff: e.Diff}
	if e.Err != nil {
		line.Error = e.Err.Error()
	}
	_ = r.out.Encode(line) // a closed stderr must not stop the work
}

func (r jsonLines) close() {}
