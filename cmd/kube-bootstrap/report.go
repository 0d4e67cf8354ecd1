package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// begin starts to draw and returns the runner whose events are drawn.
func (p *program) begin() (*step.Runner, error) {
	all := progress.All{progress.New(p.progress, p.err, p.terminal)}
	if p.timeline != "" {
		file, err := os.Create(p.timeline)
		if err != nil {
			return nil, &usageError{fmt.Errorf("--timeline: %w", err)}
		}
		all = append(all, progress.NewTimeline(file))
	}
	p.report = all
	return &step.Runner{Emit: all.Event}, nil
}

// checkProgress refuses an unknown progress mode, also for commands that show
// no progress.
func (p *program) checkProgress() error {
	if slices.Contains(progress.Modes, p.progress) {
		return nil
	}
	last := len(progress.Modes) - 1
	return &usageError{fmt.Errorf("--progress %q: must be %s or %s", p.progress, strings.Join(progress.Modes[:last], ", "), progress.Modes[last])}
}

// endProgress ends the drawing, so that later output does not overwrite it.
func (p *program) endProgress() {
	if p.report != nil {
		p.report.Close()
		p.report = nil
	}
}
