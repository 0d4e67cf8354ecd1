package remote

import (
	"bytes"
	"sync"
)

// LastLines is the number of output lines that an error contains.
const LastLines = 20

// longestLine is longer than any line of kube-bootstrap, in bytes. Lines splits a longer line,
// because an attacker may control the node and send a line without an end.
const longestLine = 1 << 20

// Lines is a writer that calls Do for each line, one at a time.
type Lines struct {
	Do   func(line []byte)
	mu   sync.Mutex
	rest []byte
}

func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found && len(line) < longestLine {
			return len(p), nil
		}
		l.Do(line)
		l.rest = rest
	}
}

// Flush handles a last line without a newline.
func (l *Lines) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		l.Do(l.rest)
		l.rest = nil
	}
}
