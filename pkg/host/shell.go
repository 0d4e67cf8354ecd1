package host

import (
	"context"
	"io"
)

// Size is the size of a terminal, in characters.
type Size struct{ Rows, Columns int }

// Shell is a command with a terminal of its own.
type Shell struct {
	Args     []string
	Terminal string // its kind, such as xterm
	Input    io.Reader
	Output   io.Writer
	Sizes    <-chan Size // of the user's terminal: the first one, and each change
}

// Follow calls resize with each size of the user's terminal until ctx ends or Sizes is closed.
func (s Shell) Follow(ctx context.Context, resize func(Size)) {
	for {
		select {
		case <-ctx.Done():
			return
		case size, more := <-s.Sizes:
			if !more {
				return
			}
			resize(size)
		}
	}
}
