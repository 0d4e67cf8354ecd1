package main

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// screen keeps moving lines at the end of a terminal, below text that stays.
type screen struct {
	out   io.Writer
	size  func() (width, height int)
	drawn []string // the moving lines as they were drawn last
}

// draw replaces the moving lines, and adds still ones above them. It writes
// once, and erases only what it does not write over, so that nothing flickers.
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

// rows is how many rows of the terminal the moving lines take: it may have
// become narrower since they were drawn.
func (s *screen) rows() (n int) {
	width, height := s.size()
	for _, text := range s.drawn {
		n += max(1, (runewidth.StringWidth(text)+width-1)/max(width, 1))
	}
	return min(n, height-1)
}

// redraws reports whether lines of a terminal can be drawn again: a serial
// console has no size, and a log keeps the codes that move the cursor.
func redraws(file *os.File, env func(string) string) bool {
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width == 0 || height == 0 {
		return false
	}
	ci := env("CI")
	return env("TERM") != "dumb" && (ci == "" || ci == "false")
}

// sizeOf is the size of the terminal as it is now.
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
