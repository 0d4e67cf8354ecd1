package progress

import (
	"io"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Timeline is the record of the steps of a run: when each began and ended.
type Timeline struct {
	Title string
	steps []*span
}

type span struct {
	stage      int
	host, name string // host is empty where all steps run on this one
	begin, end time.Time
	failed     bool
	critical   bool // its host would have ended earlier without it
}

// timelineReporter records the steps and draws them at the end.
type timelineReporter struct {
	Timeline
	out  io.WriteCloser
	draw func(Timeline) string
}

// NewTimeline returns a reporter that draws where the time of a run went, writes
// that to out and closes it. A file whose name ends in .json gets the Trace Event
// Format, which Perfetto and chrome://tracing open, and any other file a picture
// in SVG.
func NewTimeline(out io.WriteCloser, name, title string) Reporter {
	draw := Timeline.svg
	if strings.HasSuffix(name, ".json") {
		draw = Timeline.trace
	}
	return &timelineReporter{Timeline: Timeline{Title: title}, out: out, draw: draw}
}

func (t *timelineReporter) Event(e step.Event) {
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

func (t *timelineReporter) Close() {
	_, end := t.bounds()
	for _, s := range t.steps {
		if s.end.IsZero() {
			s.end = end // the run was interrupted
		}
	}
	for _, host := range t.hosts() {
		markCritical(t.of(host))
	}
	_, _ = io.WriteString(t.out, t.draw(t.Timeline))
	_ = t.out.Close()
}

func (t Timeline) bounds() (begin, end time.Time) {
	for _, s := range t.steps {
		if begin.IsZero() || s.begin.Before(begin) {
			begin = s.begin
		}
		for _, at := range []time.Time{s.begin, s.end} {
			if at.After(end) {
				end = at
			}
		}
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
func (t Timeline) hosts() (all []string) {
	seen := map[string]bool{}
	for _, s := range t.steps {
		if !seen[s.host] {
			seen[s.host] = true
			all = append(all, s.host)
		}
	}
	return all
}

// of returns the steps of a host in the order in which they began.
func (t Timeline) of(host string) (all []*span) {
	for _, s := range t.steps {
		if s.host == host {
			all = append(all, s)
		}
	}
	return all
}
