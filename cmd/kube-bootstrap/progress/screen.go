package progress

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// screen redraws moving lines at the end of a terminal, below lines that stay.
type screen struct {
	out   io.Writer
	size  func() (width, height int)
	drawn []string // the moving lines of the last draw
}

// draw replaces the moving lines and adds permanent lines above them. It writes
// once and erases only what it does not overwrite, to avoid flicker.
func (s *screen) draw(still, moving []string) {
	still, moving = eachPrintable(still), eachPrintable(moving)
	if len(still)+len(moving)+len(s.drawn) == 0 {
		return
	}
	var b strings.Builder
	if up := s.rows(); up > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(up) + "A\r")
	}
	for _, text := range slices.Concat(still, moving) {
		b.WriteString(text + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	s.drawn = moving
	_, _ = io.WriteString(s.out, b.String())
}

func eachPrintable(lines []string) (all []string) {
	for _, text := range lines {
		all = append(all, Printable(text))
	}
	return all
}

// rows returns how many rows the moving lines take: the terminal may have become narrower.
func (s *screen) rows() (n int) {
	width, height := s.size()
	for _, text := range s.drawn {
		n += max(1, (runewidth.StringWidth(text)+width-1)/max(width, 1))
	}
	return min(n, height-1)
}

// Redraws reports whether lines of a terminal can be redrawn. On a serial
// console, which has no size, they cannot, and in a log file the cursor codes
// would stay as text.
func Redraws(file *os.File, env func(string) string) bool {
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width == 0 || height == 0 {
		return false
	}
	return env("TERM") != "dumb" && !InCI(env)
}

// InCI reports whether the program runs in a CI job.
func InCI(env func(string) string) bool { return env("CI") != "" && env("CI") != "false" }

// SizeOf returns a function that returns the current size of the terminal.
func SizeOf(out io.Writer) func() (width, height int) {
	return func() (int, int) {
		if file, ok := out.(*os.File); ok {
			if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 && height > 0 {
				return width, height
			}
		}
		return 80, 24
	}
}

const (
	headWidth  = 10 // width of the symbol and the time
	nameColumn = 52 // column of figures and messages, if the terminal is wide enough
	leastName  = 12 // minimum width of a name; narrower lines drop the figures
	gaugeWidth = 22
)

// head returns the beginning of a line: a symbol and the elapsed time.
func head(mark, elapsed string) string {
	return runewidth.FillRight(mark, 1) + " " + runewidth.FillLeft(elapsed, headWidth-4) + "  "
}

// line returns a head and a name, then as much of the progress as fits: figures
// first, then a gauge, then the message. It is narrower than the terminal, so
// that it never wraps.
func line(width int, head, name string, moved transfer, message string) string {
	room := width - 1 - runewidth.StringWidth(head)
	tail := figures(moved, room-min(runewidth.StringWidth(name), leastName)-1)
	column := min(nameColumn, room/2)
	switch {
	case tail != "":
		tail += more(room-max(column, runewidth.StringWidth(name))-runewidth.StringWidth(tail)-2, moved, message)
		column = min(column, room-runewidth.StringWidth(tail)-1)
		name = cut(name, max(column, room-runewidth.StringWidth(tail)-1))
	case message != "":
		column = max(min(column, room-runewidth.StringWidth(message)-1), min(column, runewidth.StringWidth(name)))
		name = cut(name, max(column, room-runewidth.StringWidth(message)-1))
		tail = message
	}
	if tail != "" {
		name = runewidth.FillRight(name, column) + " " + tail
	}
	return head + cut(name, room)
}

// figures returns the longest description of a transfer that fits into room columns.
func figures(moved transfer, room int) string {
	for _, text := range moved.words() {
		if runewidth.StringWidth(text) <= room {
			return text
		}
	}
	return ""
}

// more returns a gauge if it fits, and the message if enough of it is readable.
func more(room int, moved transfer, message string) (text string) {
	const readable = 10
	if moved.total > 0 && room > gaugeWidth {
		text = " " + gauge(moved.bytes, moved.total)
		room -= gaugeWidth + 1
	}
	if message != "" && room > readable {
		text += " " + cut(message, room-1)
	}
	return text
}

func gauge(bytes, total int64) string {
	const width = gaugeWidth - 2
	full := int(min(bytes, total) * width / total)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]"
}

// FirstLine returns the first line of a text.
func FirstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}

func cut(s string, width int) string {
	if width < 1 {
		return ""
	}
	return runewidth.Truncate(s, width, "…")
}

// cutMiddle shortens a text in its middle: the end of a test's name says what the test does.
func cutMiddle(s string, width int) string {
	if runewidth.StringWidth(s) <= width {
		return s
	}
	begin := runewidth.Truncate(s, width/3, "")
	if width < 1 {
		return ""
	}
	return begin + runewidth.TruncateLeft(s, runewidth.StringWidth(s)-(width-1-runewidth.StringWidth(begin)), "…")
}
