package progress

import (
	"io"
	"os"
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
	if len(still)+len(moving)+len(s.drawn) == 0 {
		return
	}
	var b strings.Builder
	if up := s.rows(); up > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(up) + "A\r")
	}
	for _, lines := range [][]string{still, moving} {
		for _, text := range lines {
			b.WriteString(text + "\x1b[K\n")
		}
	}
	b.WriteString("\x1b[J")
	s.drawn = moving
	_, _ = io.WriteString(s.out, b.String())
}

// rows returns the number of terminal rows that the moving lines take. The
// terminal may have become narrower since the last draw.
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
	ci := env("CI")
	return env("TERM") != "dumb" && (ci == "" || ci == "false")
}

// sizeOf returns a function that returns the current size of the terminal.
func sizeOf(out io.Writer) func() (width, height int) {
	return func() (int, int) {
		if file, ok := out.(*os.File); ok {
			if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 && height > 0 {
				return width, height
			}
		}
		return 80, 24
	}
}
