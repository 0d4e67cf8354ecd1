package progress

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// timeline is the record of the steps of a run: when each began and ended.
type timeline struct {
	title string
	steps []*span
	out   io.WriteCloser
}

type span struct {
	stage      int
	host, name string // host is empty where all steps run on this one
	begin, end time.Time
	failed     bool
	critical   bool // its host would have ended earlier without it
}

// NewTimeline returns a reporter that writes the steps of a run to out, in the Trace Event
// Format, and closes it. Perfetto and chrome://tracing open it.
func NewTimeline(out io.WriteCloser, title string) Reporter {
	return &timeline{title: title, out: out}
}

func (t *timeline) Event(e step.Event) {
	host, name := e.Host()
	switch e.Kind {
	case step.Started:
		t.steps = append(t.steps, &span{stage: e.Stage, host: host, name: name, begin: e.At})
	case step.Done, step.Undone, step.Failed:
		for _, s := range t.steps {
			if s.host == host && s.name == name && s.stage == e.Stage && s.end.IsZero() {
				s.end, s.failed = e.At, e.Kind == step.Failed
			}
		}
	}
}

func (t *timeline) Close() {
	_, end := t.bounds()
	for _, s := range t.steps {
		if s.end.IsZero() {
			s.end = end // the run was interrupted
		}
	}
	for _, host := range t.hosts() {
		markCritical(t.of(host))
	}
	_, _ = io.WriteString(t.out, t.trace())
	_ = t.out.Close()
}

func (t *timeline) bounds() (begin, end time.Time) {
	for _, s := range t.steps {
		if begin.IsZero() || s.begin.Before(begin) {
			begin = s.begin
		}
		end = slices.MaxFunc([]time.Time{end, s.begin, s.end}, time.Time.Compare)
	}
	return begin, end
}

// markCritical follows the steps of a host back from the last one, each time to the
// step that ended last before the beginning of the one after it.
func markCritical(steps []*span) {
	var next *span
	for {
		var last *span
		for _, s := range steps {
			before := next == nil || !s.end.After(next.begin)
			if before && s.begin.Before(s.end) && (last == nil || s.end.After(last.end)) {
				last = s
			}
		}
		if last == nil {
			return
		}
		last.critical, next = true, last
	}
}

// hosts returns the hosts in the order of their first steps.
func (t *timeline) hosts() (all []string) {
	for _, s := range t.steps {
		if !slices.Contains(all, s.host) {
			all = append(all, s.host)
		}
	}
	return all
}

// of returns the steps of a host in the order in which they began.
func (t *timeline) of(host string) []*span {
	return slices.DeleteFunc(slices.Clone(t.steps), func(s *span) bool { return s.host != host })
}

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

func (t *timeline) trace() string {
	begin, _ := t.bounds()
	events := []traceEvent{}
	for i, host := range t.hosts() {
		name := map[string]any{"name": cmp.Or(host, "steps")}
		events = append(events, traceEvent{Name: "process_name", Phase: "M", Process: i, Args: name})
	}
	for i, host := range t.hosts() {
		var lanes []time.Time // when the last step of each ends
		for _, s := range t.of(host) {
			events = append(events, traceEvent{Name: s.name, Phase: "X", At: s.begin.Sub(begin).Microseconds(),
				Duration: s.end.Sub(s.begin).Microseconds(),
				Process:  i, Thread: lane(&lanes, s),
				Args: map[string]any{"stage": s.stage, "failed": s.failed, "critical": s.critical}})
		}
	}
	text, err := json.MarshalIndent(map[string]any{"traceEvents": events,
		"otherData": map[string]string{"title": t.title}}, "", " ")
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
