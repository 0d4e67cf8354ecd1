package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const redrawn = 200 * time.Millisecond

// bars draws a moving line for each running step and a still one for each that has ended.
type bars struct {
	mu       sync.Mutex
	screen   screen
	running  []*barLine // oldest first
	moving   transfers
	verbose  bool
	upToDate int           // steps
	done     int           // steps
	stop     chan struct{} // nil once closed
}

func newBars(out io.Writer, size func() (width, height int), verbose bool) *bars {
	r := &bars{screen: screen{out: out, size: size}, verbose: verbose, stop: make(chan struct{})}
	go each(redrawn, r.stop, r.draw)
	return r
}

func (r *bars) draw(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		r.screen.draw(nil, r.lines(now))
	}
}

func (r *bars) Event(e step.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	moved := r.moving.Event(e)
	switch e.Kind {
	case step.Started:
		r.running = append(r.running, newBarLine(e))
	case step.Progress:
		if i := r.find(e.Step); i >= 0 {
			r.running[i].message, r.running[i].doing, r.running[i].moved = e.Message, e.Doing, moved
		}
	case step.Note:
		// indented, as in plain lines
		r.screen.draw(strings.Split(strings.ReplaceAll(e.Message, "\n", "\n    "), "\n"), r.lines(e.At))
	case step.UpToDate:
		r.upToDate++
		if r.verbose {
			r.screen.draw([]string{head("✓", "") + e.Step + ": up to date"}, r.lines(e.At))
		}
	case step.Done, step.Undone:
		r.done++
		r.end(e, "✓")
	case step.Failed:
		r.end(e, "✗")
	}
}

func (r *bars) find(name string) int {
	return slices.IndexFunc(r.running, func(l *barLine) bool { return l.name == name })
}

// end prints the final line of a step that has ended. A failed check has no running
// line. The run on a host of a cluster has a line of its own, so the parts of it are
// printed only if verbose or failed.
func (r *bars) end(e step.Event, mark string) {
	elapsed := ""
	if i := r.find(e.Step); i >= 0 {
		elapsed = Took(e.At.Sub(r.running[i].started))
		r.running = slices.Delete(r.running, i, i+1)
	}
	if host, _ := e.Host(); host != "" && !r.verbose && e.Kind != step.Failed {
		return
	}
	r.screen.draw([]string{head(mark, elapsed) + e.Step}, r.lines(e.At))
}

// lines returns the moving lines: one for each running step, and the sum of
// parallel transfers. If there are too many steps for the terminal, it returns
// the first ones.
func (r *bars) lines(now time.Time) []string {
	width, height := r.screen.size()
	var last []string
	if sum, several := r.moving.sum(); several && len(r.running) > 0 {
		last = []string{line(width, head("", ""), "total", sum, "")}
	}
	drawn, room := r.visible(), max(height-2-len(last), 1)
	if more := len(drawn) - room; more > 0 {
		drawn = drawn[:room]
		last = append([]string{fmt.Sprintf("%s… and %d more", head("", ""), more)}, last...)
	}
	var all []string
	for _, l := range drawn {
		all = append(all, l.draw(now, width))
		for _, what := range l.doing {
			before := head("", "") + "  "
			all = append(all, before+cutMiddle(what, width-1-runewidth.StringWidth(before)))
		}
	}
	return append(all[:min(len(all), room)], last...)
}

func (r *bars) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop == nil {
		return
	}
	close(r.stop)
	r.stop = nil
	r.screen.draw(r.summary(), nil)
}

// summary counts the steps that are up to date if they are the majority. In the first run on
// a host they are few, and only mean that a step does not apply to this host.
func (r *bars) summary() []string {
	text := fmt.Sprintf("%d steps were up to date", r.upToDate)
	switch {
	case r.upToDate <= r.done:
		return nil
	case r.upToDate == 1:
		text = "1 step was up to date"
	}
	return []string{head("✓", "") + text}
}

type barLine struct {
	name    string
	host    string // of a part of the run on a host
	stage   string // "3 of 21: " of a part; empty before the first stage
	part    string // name of the part that the line of a run shows
	started time.Time
	message string
	doing   []string
	moved   transfer
}

func newBarLine(e step.Event) *barLine {
	l := &barLine{name: e.Step, started: e.At}
	if l.host, _ = e.Host(); l.host != "" && e.Stage >= 0 && e.Stages > 0 {
		l.stage = fmt.Sprintf("%d of %d: ", e.Stage+1, e.Stages)
	}
	return l
}

// visible returns the lines to draw. Unless verbose, the parts of the run on a host
// have no lines of their own: the line of the run shows the oldest part that runs.
func (r *bars) visible() (all []barLine) {
	runs := map[string]int{} // host to index in all
	for _, l := range r.running {
		run, found := runs[l.host]
		switch {
		case r.verbose || !found:
			all = append(all, *l)
			if host := runsOn(l.name); host != "" {
				runs[host] = len(all) - 1
			}
		case all[run].part == "":
			all[run].show(l)
		}
	}
	return all
}

// runsOn returns the host of a step such as "run worker on one".
func runsOn(name string) string {
	what, host, _ := strings.Cut(name, " on ")
	if !strings.HasPrefix(what, "run ") {
		return ""
	}
	return host
}

func (l *barLine) show(part *barLine) {
	l.part = strings.TrimPrefix(part.name, part.host+": ")
	l.message = part.stage + l.part
	if part.message != "" {
		l.message += ": " + FirstLine(part.message)
	}
	l.moved, l.doing = part.moved, part.doing
}

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

func (l *barLine) draw(now time.Time, width int) string {
	elapsed := max(now.Sub(l.started), 0)
	frame := spinner[int(elapsed/redrawn)%len(spinner)]
	return line(width, head(string(frame), Took(elapsed)), l.name, l.moved, FirstLine(l.message))
}
