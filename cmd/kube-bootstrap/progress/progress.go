// Package progress draws the events of steps on a terminal, in a log, as JSON or as
// a timeline.
package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Reporter draws the events of steps as they happen, until Close.
type Reporter interface {
	Event(step.Event)
	Close()
}

// Modes are the ways to show progress, and auto, which selects one of them.
var Modes = []string{"auto", "bars", "plain", "json", "none"}

// New returns the reporter of a mode other than auto. If verbose, it shows all steps and messages.
func New(mode string, verbose bool, out io.Writer) Reporter {
	switch {
	case mode == "bars":
		return newBars(out, SizeOf(out), verbose)
	case mode == "json":
		return jsonLines{json.NewEncoder(out)}
	case mode == "none":
		return All{}
	case verbose:
		return newPlain(out, time.Second)
	}
	return newPlain(out, quiet)
}

// each calls do at an interval until stop is closed.
func each(interval time.Duration, stop <-chan struct{}, do func(now time.Time)) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case now := <-ticks.C:
			do(now)
		case <-stop:
			return
		}
	}
}

// All passes each event to several reporters.
type All []Reporter

// Event passes e to each reporter.
func (all All) Event(e step.Event) {
	for _, r := range all {
		r.Event(e)
	}
}

// Close closes each reporter.
func (all All) Close() {
	for _, r := range all {
		r.Close()
	}
}

// Took is a duration as a person says it.
func Took(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d >= 48*time.Hour:
		hours := int(d.Round(time.Hour).Hours())
		return fmt.Sprintf("%dd%dh", hours/24, hours%24)
	}
	return d.Round(time.Second).String()
}

// Amount says how far a transfer is: "12 of 130 MB".
func Amount(bytes, total int64) string {
	const mega = 1000 * 1000
	switch {
	case total > 0:
		return fmt.Sprintf("%d of %d MB", bytes/mega, (total+mega-1)/mega)
	case bytes > 0:
		return fmt.Sprintf("%d MB", bytes/mega)
	}
	return ""
}

// jsonLines writes each event as one line.
type jsonLines struct{ out *json.Encoder }

// A closed stderr must not stop the work.
func (r jsonLines) Event(e step.Event) { _ = r.out.Encode(e) }

func (r jsonLines) Close() {}

// result is the last line of JSON progress.
type result struct {
	At       time.Time       `json:"at"`
	Kind     step.EventKind  `json:"kind"`
	Code     int             `json:"code"`
	Error    string          `json:"error,omitempty"`
	Problems []*step.Problem `json:"problems,omitempty"`
}

// WriteResult writes how a run ended as the last line of JSON progress.
func WriteResult(out io.Writer, code int, err error) {
	line := result{At: time.Now(), Kind: step.Result, Code: code}
	if err != nil {
		line.Error, line.Problems = err.Error(), step.Problems(err)
	}
	_ = json.NewEncoder(out).Encode(line)
}
