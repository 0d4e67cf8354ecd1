package progress

import (
	"cmp"
	_ "embed" // timeline.css
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// timeline is the record of the steps of a run: when each began and ended.
type timeline struct {
	title string
	steps []*span
	out   io.WriteCloser
	draw  func(*timeline) string
}

type span struct {
	stage      int
	host, name string // host is empty where all steps run on this one
	begin, end time.Time
	failed     bool
	critical   bool // its host would have ended earlier without it
}

// NewTimeline returns a reporter that draws where the time of a run went, writes that to out
// and closes it. A file whose name ends in .json gets the Trace Event Format, which Perfetto
// and chrome://tracing open, and any other file a picture in SVG.
func NewTimeline(out io.WriteCloser, name, title string) Reporter {
	t := &timeline{title: title, out: out, draw: (*timeline).svg}
	if strings.HasSuffix(name, ".json") {
		t.draw = (*timeline).trace
	}
	return t
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
	_, _ = io.WriteString(t.out, t.draw(t))
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
			events = append(events, traceEvent{Name: s.name, Phase: "X", At: s.begin.Sub(begin).Microseconds(), Duration: s.end.Sub(s.begin).Microseconds(),
				Process: i, Thread: lane(&lanes, s), Args: map[string]any{"stage": s.stage, "failed": s.failed, "critical": s.critical}})
		}
	}
	text, err := json.MarshalIndent(map[string]any{"traceEvents": events, "otherData": map[string]string{"title": t.title}}, "", " ")
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

const (
	timelineWidth = 900 // of the bars
	letterWidth   = 8   // width of the widest usual letter
	lineHeight    = 22
)

// timelineStyle follows the colours of the reader's system.
//
//go:embed timeline.css
var timelineStyle string

// scale places times on the picture.
type scale struct {
	left      int // column of the bars, after the longest label
	begin     time.Time
	perSecond float64 // columns
}

func (c scale) at(t time.Time) float64 { return float64(c.left) + t.Sub(c.begin).Seconds()*c.perSecond }

// svg draws one line for each step, below the name of its host.
func (t *timeline) svg() string {
	begin, end := t.bounds()
	c := scale{t.labelWidth(), begin, timelineWidth / max(end.Sub(begin).Seconds(), 0.001)}
	lines := []string{label("title", t.title)}
	for _, host := range t.hosts() {
		if host != "" {
			lines = append(lines, label("host", host))
		}
		for _, s := range t.of(host) {
			lines = append(lines, s.bar(c))
		}
	}
	lines = append(lines, "", label("", "total "+Took(end.Sub(begin))+"; the outlined steps determine the time of their host"))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d">`+"\n<style>\n%s</style>\n"+`<rect class="page" width="100%%" height="100%%"/>`+"\n",
		c.left+timelineWidth+100, (len(lines)+1)*lineHeight, timelineStyle)
	c.axis(&b, end, len(lines)-2)
	for i, line := range lines {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">%s</g>`+"\n", (i+1)*lineHeight, line)
	}
	return b.String() + "</svg>\n"
}

// labelWidth returns the column of the bars.
func (t *timeline) labelWidth() int {
	longest := 0
	for _, s := range t.steps {
		longest = max(longest, runewidth.StringWidth(s.name))
	}
	return (longest + 3) * letterWidth
}

func label(class, text string) string {
	return fmt.Sprintf(`<text class="%s" x="8">%s</text>`, class, html.EscapeString(text))
}

// axis draws a line each second, or each 2, 5, 10, ... of a long run.
func (c scale) axis(b *strings.Builder, end time.Time, lines int) {
	every, all := time.Second, end.Sub(c.begin)
	for i := 0; all/every > 20; i++ {
		every = []time.Duration{2, 5, 10}[i%3] * time.Second * time.Duration(math.Pow10(i/3))
	}
	top, bottom := lineHeight+8, (lines+1)*lineHeight
	for at := every; at < all; at += every {
		x := c.at(c.begin.Add(at))
		fmt.Fprintf(b, `<path class="axis" d="M%.1f %dV%d"/><text class="seconds" x="%.1f" y="%d">%d</text>`+"\n",
			x, top, bottom, x, bottom+lineHeight-8, int(at.Seconds()))
	}
}

// bar draws a step. The pointer on it shows when it began and ended.
func (s *span) bar(c scale) string {
	class := []string{"even", "odd"}[s.stage&1]
	if s.failed {
		class = "failed"
	}
	if s.critical {
		class += " critical"
	}
	x, took := c.at(s.begin), Took(s.end.Sub(s.begin))
	width := max(c.at(s.end)-x, 1)
	tip := fmt.Sprintf("%s: %s, from %s to %s", s.name, took, Took(s.begin.Sub(c.begin)), Took(s.end.Sub(c.begin)))
	return fmt.Sprintf(`<title>%s</title>%s<rect class="%s" x="%.1f" y="-12" width="%.1f" height="14"/><text x="%.1f">%s</text>`,
		html.EscapeString(tip), label("", s.name), class, x, width, x+width+4, took)
}
