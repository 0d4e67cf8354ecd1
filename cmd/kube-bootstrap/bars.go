package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// bars draws a moving line for each running step and leaves a still one for
// each that has ended.
type bars struct {
	screen  *mpb.Progress
	running map[string]*barLine
	moving  transfers
	all     *barLine // the transfers of a row together
	inPlace int
	closed  bool
}

// barLine is the line of one running step. The screen reads it from its own
// goroutine.
type barLine struct {
	bar     *mpb.Bar
	name    string
	started time.Time

	mu      sync.Mutex
	message string
	moved   transfer
}

func newBars(out io.Writer) *bars {
	return &bars{
		screen:  mpb.New(mpb.WithOutput(out), mpb.WithAutoRefresh(), mpb.WithRefreshRate(100*time.Millisecond)),
		running: map[string]*barLine{},
	}
}

func (r *bars) event(e step.Event) {
	line := r.running[e.Step]
	moved := r.moving.event(e)
	switch e.Kind {
	case step.Started:
		r.start(e)
	case step.Progress:
		if line != nil {
			line.update(e.Message, *moved)
		}
	case step.Note:
		r.still(e.Message)
	case step.InPlace:
		r.inPlace++
	case step.Done, step.Undone:
		r.end(e, "✓")
	case step.Failed:
		r.end(e, "✗")
	}
	r.together(e.At)
}

func (r *bars) start(e step.Event) { r.running[e.Step] = r.line(e.Step, e.At) }

func (r *bars) line(name string, started time.Time, options ...mpb.BarOption) *barLine {
	line := &barLine{name: name, started: started}
	options = append(options, mpb.BarFillerTrim(), mpb.PrependDecorators(decor.Any(line.draw)))
	line.bar = r.screen.New(1, mpb.NopStyle(), options...)
	return line
}

// together keeps a last line with the sum of what is transferred side by side.
func (r *bars) together(now time.Time) {
	sum, several := r.moving.sum()
	switch {
	case several && len(r.running) > 0:
		if r.all == nil {
			r.all = r.line("in all", now, mpb.BarPriority(math.MaxInt32))
		}
		r.all.update("", sum)
	case r.all != nil:
		r.all.bar.Abort(true)
		r.all.bar.Wait()
		r.all = nil
	}
}

func (r *bars) end(e step.Event, mark string) {
	line := r.running[e.Step]
	if line == nil {
		r.still(fmt.Sprintf("%s %s", mark, e.Step))
		return
	}
	delete(r.running, e.Step)
	line.bar.Abort(true)
	line.bar.Wait()
	r.still(fmt.Sprintf("%s %-52s %6s", mark, e.Step, took(e.At.Sub(line.started))))
}

func (r *bars) still(text string) { _, _ = r.screen.Write([]byte(text + "\n")) }

func (r *bars) close() {
	if r.closed {
		return
	}
	r.closed = true
	for _, line := range r.running {
		line.bar.Abort(true)
	}
	if r.all != nil {
		r.all.bar.Abort(true)
	}
	if r.inPlace > 0 {
		r.still(fmt.Sprintf("✓ %d steps were in place", r.inPlace))
	}
	r.screen.Wait()
}

func (l *barLine) update(message string, moved transfer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.message, l.moved = message, moved
}

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

func (l *barLine) draw(s decor.Statistics) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	elapsed := time.Since(l.started)
	frame := spinner[int(elapsed/(100*time.Millisecond))%len(spinner)]
	text := fmt.Sprintf("%c %-52s %6s", frame, l.name, took(elapsed))
	if l.moved.total > 0 {
		text += " " + gauge(l.moved.bytes, l.moved.total)
	}
	if more := strings.TrimSpace(l.moved.String() + " " + firstLine(l.message)); more != "" {
		text += " " + more
	}
	return cut(text, s.AvailableWidth-1)
}

func gauge(bytes, total int64) string {
	const width = 20
	full := int(min(bytes, total) * width / total)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]"
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}

func cut(s string, width int) string {
	letters := []rune(s)
	if width < 1 || len(letters) <= width {
		return s
	}
	return string(letters[:width-1]) + "…"
}
