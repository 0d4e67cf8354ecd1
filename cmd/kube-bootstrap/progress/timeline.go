package progress

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// timelineReporter draws where the time went: one bar a step, side by side
// where steps ran at the same time.
type timelineReporter struct {
	out   io.WriteCloser
	steps []*span
}

type span struct {
	row        int
	name       string
	begin, end time.Time
	failed     bool
}

// NewTimeline returns a reporter that writes an SVG picture to out and closes it.
func NewTimeline(out io.WriteCloser) Reporter { return &timelineReporter{out: out} }

func (t *timelineReporter) Event(e step.Event) {
	if e.Kind == step.Started {
		t.steps = append(t.steps, &span{row: e.Row, name: e.Step, begin: e.At})
		return
	}
	for _, s := range t.steps {
		if s.name == e.Step && s.row == e.Row && s.end.IsZero() && e.Kind != step.Progress {
			s.end, s.failed = e.At, e.Kind == step.Failed
		}
	}
}

func (t *timelineReporter) Close() {
	_, _ = io.WriteString(t.out, t.svg())
	_ = t.out.Close()
}

const (
	timelineWidth = 900 // of the bars
	letterWidth   = 8   // width of the widest usual letter
	lineHeight    = 22
)

// labelWidth returns the column of the bars, after the longest label.
func (t *timelineReporter) labelWidth() int {
	longest := 0
	for _, s := range t.steps {
		longest = max(longest, runewidth.StringWidth(s.name))
	}
	return (longest + 3) * letterWidth
}

func (t *timelineReporter) svg() string {
	var b strings.Builder
	begin, end := t.bounds()
	left := t.labelWidth()
	height := (len(t.steps) + 2) * lineHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`+"\n",
		left+timelineWidth+100, height)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	axis(&b, left, end.Sub(begin), height-2*lineHeight)
	for i, s := range t.steps {
		if s.end.IsZero() {
			s.end = end
		}
		b.WriteString(s.bar(i, left, begin, end.Sub(begin)))
	}
	fmt.Fprintf(&b, `<text x="8" y="%d">total %s</text>`+"\n</svg>\n", height-lineHeight/2, Took(end.Sub(begin)))
	return b.String()
}

// axis draws a line each second, or each 2, 5, 10, ... of a long run.
func axis(b *strings.Builder, left int, all time.Duration, height int) {
	every := time.Second
	for i := 0; all/every > 20; i++ {
		every = []time.Duration{2, 5, 10}[i%3] * time.Second * time.Duration(math.Pow10(i/3))
	}
	for at := every; at < all; at += every {
		x := float64(left) + at.Seconds()*timelineWidth/all.Seconds()
		fmt.Fprintf(b, `<path d="M%.1f 8V%d" stroke="#ddd"/><text x="%.1f" y="%d" fill="#888" text-anchor="middle">%d</text>`+"\n",
			x, height+4, x, height+lineHeight-4, int(at.Seconds()))
	}
}

func (t *timelineReporter) bounds() (begin, end time.Time) {
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

func (s *span) bar(line, left int, begin time.Time, all time.Duration) string {
	scale := float64(timelineWidth) / max(all.Seconds(), 0.001)
	x := float64(left) + s.begin.Sub(begin).Seconds()*scale
	width := max(s.end.Sub(s.begin).Seconds()*scale, 1)
	color := []string{"#4878a8", "#6aa66a"}[s.row&1]
	if s.failed {
		color = "#c04040"
	}
	y := line*lineHeight + lineHeight
	return fmt.Sprintf(`<text x="8" y="%d">%s</text><rect x="%.1f" y="%d" width="%.1f" height="14" fill="%s"/><text x="%.1f" y="%d">%s</text>`+"\n",
		y, html.EscapeString(s.name), x, y-12, width, color, x+width+4, y, Took(s.end.Sub(s.begin)))
}
