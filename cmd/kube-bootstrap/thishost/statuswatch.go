package thishost

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// statusWatch prints the status of a host whenever it changes.
type statusWatch struct {
	look     func(context.Context) (Status, error)
	pause    time.Duration // between two looks
	format   output.Format
	out      io.Writer
	terminal bool // the status replaces the one before
}

// run returns the last status once the user ends the command.
func (s statusWatch) run(ctx context.Context) (last Status, err error) {
	var printed []byte
	for {
		status, err := s.look(ctx)
		if ctx.Err() != nil && printed != nil {
			return last, nil
		}
		if err != nil {
			return last, err
		}
		last = status
		var text bytes.Buffer
		if err := s.format.Print(&text, "HostStatus", status, status.print); err != nil {
			return last, err
		}
		if !bytes.Equal(text.Bytes(), printed) {
			printed = text.Bytes()
			if err := s.print(printed); err != nil {
				return last, err
			}
		}
		if step.Pause(ctx, s.pause) != nil {
			return last, nil
		}
	}
}

// print separates the documents of a stream: a time begins a table, YAML has a
// line for that, and JSON needs none.
func (s statusWatch) print(text []byte) error {
	const clearScreen = "\x1b[H\x1b[2J" // cursor to the first column of the first line, clear
	before, after := "", ""
	switch {
	case s.terminal:
		before = clearScreen
	case s.format == output.Table:
		before, after = time.Now().Format(time.RFC3339)+"\n", "\n"
	case s.format == "yaml":
		before = "---\n"
	}
	_, err := io.WriteString(s.out, before+string(text)+after)
	return err
}
