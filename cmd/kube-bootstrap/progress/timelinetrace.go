package progress

import (
	"encoding/json"
	"slices"
	"time"
)

// traceEvent is an event of the Trace Event Format. Times are in microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Phase    string         `json:"ph"` // X: a complete event; M: metadata
	At       int64          `json:"ts"`
	Duration int64          `json:"dur,omitempty"`
	Process  int            `json:"pid"` // a host
	Thread   int            `json:"tid"` // steps at the same time have different ones
	Args     map[string]any `json:"args,omitempty"`
}

func (t Timeline) trace() string {
	begin, _ := t.bounds()
	events := []traceEvent{}
	for i, host := range t.hosts() {
		if host == "" {
			host = "steps"
		}
		events = append(events, traceEvent{Name: "process_name", Phase: "M", Process: i, Args: map[string]any{"name": host}})
	}
	for i, host := range t.hosts() {
		var lanes []time.Time // when the last step of each ends
		for _, s := range t.of(host) {
			events = append(events, traceEvent{Name: s.name, Phase: "X", At: s.begin.Sub(begin).Microseconds(), Duration: s.end.Sub(s.begin).Microseconds(),
				Process: i, Thread: lane(&lanes, s), Args: map[string]any{"stage": s.stage, "failed": s.failed, "critical": s.critical}})
		}
	}
	text, err := json.MarshalIndent(map[string]any{"traceEvents": events, "otherData": map[string]string{"title": t.Title}}, "", " ")
	if err != nil {
		panic(err) // only numbers and strings
	}
	return string(text) + "\n"
}

// lane returns the first lane that is free when s begins, and takes it.
func lane(lanes *[]time.Time, s *span) int {
	i := slices.IndexFunc(*lanes, func(end time.Time) bool { return !end.After(s.begin) })
	if i < 0 {
		i = len(*lanes)
		*lanes = append(*lanes, time.Time{})
	}
	(*lanes)[i] = s.end
	return i
}
