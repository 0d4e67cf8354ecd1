package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// quiet is how long a running step may say nothing new in plain lines.
const quiet = 10 * time.Second

// plain writes one line an event, for logs and pipes.
type plain struct {
	out     io.Writer
	started map[string]time.Time
	told    map[string]time.Time
}

func newPlain(out io.Writer) *plain {
	return &plain{out: out, started: map[string]time.Time{}, told: map[string]time.Time{}}
}

func (r *plain) event(e step.Event) {
	switch e.Kind {
	case step.Started:
		r.started[e.Step], r.told[e.Step] = e.At, e.At
		r.line(e, "")
	case step.Progress:
		if e.At.Sub(r.told[e.Step]) >= quiet {
			r.told[e.Step] = e.At
			r.line(e, ": "+strings.TrimSpace(e.Message+" "+amount(e.Bytes, e.Total)))
		}
	case step.Done, step.Undone:
		r.line(e, fmt.Sprintf(": %s in %s", e.Kind, took(e.At.Sub(r.started[e.Step]))))
	case step.InPlace:
		r.line(e, ": in place")
	}
}

func (r *plain) line(e step.Event, text string) {
	fmt.Fprint(r.out, lines("+++", e.At, e.Step+text))
}

func (r *plain) close() {}
