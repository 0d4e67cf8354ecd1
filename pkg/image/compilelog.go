package image

import (
	"bytes"
	"fmt"
	"strings"
)

// compileLog counts the packages that `go build -v` prints, one per line,
// reports downloads of modules, and keeps all other lines for the error
// message.
type compileLog struct {
	what    string // "compile kubelet v1.36.3 for amd64"
	then    string // the stage after all packages are compiled: "link"
	total   int    // number of packages to compile
	report  func(message string)
	partial []byte
	count   int
	other   []string
}

func (l *compileLog) Write(p []byte) (int, error) {
	l.partial = append(l.partial, p...)
	for {
		line, rest, found := bytes.Cut(l.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.line(string(line))
		l.partial = append([]byte(nil), rest...)
	}
}

func (l *compileLog) line(text string) {
	module, downloaded := strings.CutPrefix(text, "go: downloading ")
	switch {
	case downloaded:
		l.report(l.what + ": download " + module)
	case text == "" || strings.ContainsAny(text, " \t:"):
		l.other = append(l.other, text)
	default:
		l.count++
		l.tell()
	}
}

func (l *compileLog) tell() {
	if l.count < l.total {
		l.report(fmt.Sprintf("%s: %d of %d packages", l.what, l.count, l.total))
		return
	}
	l.report(l.what + ": " + l.then)
}

func (l *compileLog) tail() string {
	const lines = 20
	return strings.Join(l.other[max(0, len(l.other)-lines):], "\n")
}
