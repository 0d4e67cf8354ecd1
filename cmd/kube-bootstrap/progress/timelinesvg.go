package progress

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

const (
	timelineWidth = 900 // of the bars
	letterWidth   = 8   // width of the widest usual letter
	lineHeight    = 22
)

// timelineStyle follows the colours of the reader's system.
const timelineStyle = `<style>
svg { font: 13px sans-serif } .page { fill: #fff } text { fill: #222 } .axis { stroke: #ddd }
.title, .host { font-weight: bold } .seconds { fill: #888; text-anchor: middle }
.even { fill: #4878a8 } .odd { fill: #6aa66a } .failed { fill: #c04040 } .critical { stroke: #e08a00; stroke-width: 2 }
g:hover text { font-weight: bold } g:hover rect { opacity: .75 }
@media (prefers-color-scheme: dark) { .page { fill: #1e1e1e } text { fill: #ddd } .axis { stroke: #444 } }
</style>
`

// scale places times on the picture.
type scale struct {
	left      int // column of the bars, after the longest label
	begin     time.Time
	perSecond float64 // columns
}

func (c scale) at(t time.Time) float64 { return float64(c.left) + t.Sub(c.begin).Seconds()*c.perSecond }

// svg draws one line for each step, below the name of its host.
func (t Timeline) svg() string {
	begin, end := t.bounds()
	c := scale{t.labelWidth(), begin, timelineWidth / max(end.Sub(begin).Seconds(), 0.001)}
	lines := []string{label("title", t.Title)}
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
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d">`+"\n%s"+`<rect class="page" width="100%%" height="100%%"/>`+"\n",
		c.left+timelineWidth+100, (len(lines)+1)*lineHeight, timelineStyle)
	c.axis(&b, end, len(lines)-2)
	for i, line := range lines {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">%s</g>`+"\n", (i+1)*lineHeight, line)
	}
	return b.String() + "</svg>\n"
}

// labelWidth returns the column of the bars.
func (t Timeline) labelWidth() int {
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
