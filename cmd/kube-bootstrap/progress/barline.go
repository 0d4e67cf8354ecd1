package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// barLine is the line of one running step.
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

// show makes the line of a run show its part.
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
