package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// reporter draws the events of steps as they happen. close ends the drawing;
// what failed is told afterwards, in one place.
type reporter interface {
	event(step.Event)
	close()
}

// begin starts to draw and returns the runner whose events are drawn.
func (p *program) begin() (*step.Runner, error) {
	all := reporters{p.newReporter()}
	if p.timeline != "" {
		file, err := os.Create(p.timeline)
		if err != nil {
			return nil, &usageError{fmt.Errorf("--timeline: %w", err)}
		}
		all = append(all, &timelineReporter{out: file})
	}
	p.report = all
	return &step.Runner{Emit: all.event}, nil
}

var progressModes = []string{"auto", "bars", "plain", "json", "none"}

// checkProgress refuses an unknown progress mode, also for commands that show
// no progress.
func (p *program) checkProgress() error {
	if slices.Contains(progressModes, p.progress) {
		return nil
	}
	return &usageError{fmt.Errorf("--progress %q: must be auto, bars, plain, json or none", p.progress)}
}

func (p *program) newReporter() reporter {
	mode := p.progress
	if mode == "auto" {
		mode = "plain"
		if p.terminal {
			mode = "bars"
		}
	}
	switch mode {
	case "bars":
		return newBars(p.err, sizeOf(p.err))
	case "json":
		return newJSONLines(p.err)
	case "none":
		return reporters{}
	}
	return newPlain(p.err)
}

// endProgress ends the drawing, so that what follows is not drawn over.
func (p *program) endProgress() {
	if p.report != nil {
		p.report.close()
		p.report = nil
	}
}

type reporters []reporter

func (all reporters) event(e step.Event) {
	for _, r := range all {
		r.event(e)
	}
}

func (all reporters) close() {
	for _, r := range all {
		r.close()
	}
}

// took is a duration as a person says it.
func took(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// amount says how far a transfer is: "12 of 130 MB".
func amount(bytes, total int64) string {
	const mega = 1000 * 1000
	switch {
	case total > 0:
		return fmt.Sprintf("%d of %d MB", bytes/mega, (total+mega-1)/mega)
	case bytes > 0:
		return fmt.Sprintf("%d MB", bytes/mega)
	}
	return ""
}
