package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// line is one line that a kube-bootstrap with --progress json writes.
type line struct {
	At      time.Time `json:"at"`
	Row     int       `json:"row"`
	Step    string    `json:"step"`
	Kind    step.Kind `json:"kind"`
	Message string    `json:"message"`
	Bytes   int64     `json:"bytes"`
	Total   int64     `json:"total"`
	Diff    step.Diff `json:"diff"`
	Error   string    `json:"error"`
}

func (l line) event() step.Event {
	e := step.Event{At: l.At, Row: l.Row, Step: l.Step, Kind: l.Kind, Message: l.Message, Bytes: l.Bytes, Total: l.Total, Diff: l.Diff}
	if l.Error != "" {
		e.Err = errors.New(l.Error)
	}
	return e
}

// relay turns what a kube-bootstrap on a host writes to stderr into events,
// and keeps what explains a failure.
type relay struct {
	emit func(step.Event)

	mu     sync.Mutex
	rest   []byte
	failed []string // errors of steps
	other  []string // lines that are no events
}

func (r *relay) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = append(r.rest, p...)
	for {
		text, rest, found := bytes.Cut(r.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		r.line(text)
		r.rest = rest
	}
}

// flush takes a last line that has no end.
func (r *relay) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rest) > 0 {
		r.line(r.rest)
		r.rest = nil
	}
}

func (r *relay) line(text []byte) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil || l.Kind == "" {
		if plain := strings.TrimSpace(string(text)); plain != "" {
			r.other = append(r.other[max(0, len(r.other)-keptLines+1):], plain)
		}
		return
	}
	if l.Kind == step.Failed && l.Error != "" && !slices.Contains(r.failed, l.Error) {
		r.failed = append(r.failed, l.Error)
	}
	r.emit(l.event())
}

// explain says why the program on the host failed, in its own words.
func (r *relay) explain(exit *driver.ExitError) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failed) > 0 {
		return fmt.Errorf("%s: %s", exit.Node, strings.Join(r.failed, "; "))
	}
	if len(r.other) > 0 {
		return fmt.Errorf("%s: %s", exit.Node, strings.Join(r.other, "\n"))
	}
	return exit
}
