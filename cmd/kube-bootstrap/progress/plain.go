package progress

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// quiet is how long a running step may say nothing, unless the user wants every message.
const quiet = 10 * time.Second

// plain writes a line for each event, and one now and then for a long step, which may seem to hang.
type plain struct {
	out   io.Writer
	quiet time.Duration // how long a running step with one line may say nothing

	mu      sync.Mutex
	running map[string]*plainStep
	moving  transfers
	stop    chan struct{}
}

type plainStep struct {
	name          string
	started, told time.Time
	message       string
	doing         []string
}

// mayTell reports whether it is time to say what a step does; with several lines less often.
func (r *plain) mayTell(s *plainStep, now time.Time) bool {
	every := r.quiet
	if len(s.doing) > 0 {
		every *= 3
	}
	return now.Sub(s.told) >= every
}

func newPlain(out io.Writer, quiet time.Duration) *plain {
	r := &plain{out: out, quiet: quiet, running: map[string]*plainStep{}, stop: make(chan struct{})}
	go each(quiet/10, r.stop, r.remind)
	return r
}

// remind prints the steps that still run and have printed nothing for long.
func (r *plain) remind(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldestFirst := func(a, b *plainStep) int { return a.started.Compare(b.started) }
	for _, s := range slices.SortedFunc(maps.Values(r.running), oldestFirst) {
		if r.mayTell(s, now) {
			r.progress(s, now)
		}
	}
}

func (r *plain) Event(e step.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.running[e.Step]
	moved := r.moving.Event(e)
	switch e.Kind {
	case step.Started:
		r.running[e.Step] = &plainStep{name: e.Step, started: e.At, told: e.At}
		r.line(e.At, e.Step)
	case step.Progress:
		if s == nil {
			return
		}
		s.message, s.doing = strings.TrimSpace(FirstLine(e.Message)+" "+moved.String()), e.Doing
		if r.mayTell(s, e.At) {
			r.progress(s, e.At)
		}
	case step.Note:
		r.line(e.At, e.Message)
	case step.Done, step.Undone:
		text := fmt.Sprintf("%s: %s", e.Step, e.Kind)
		if s != nil {
			text += " in " + Took(e.At.Sub(s.started))
		}
		delete(r.running, e.Step)
		r.line(e.At, text)
	case step.Failed:
		delete(r.running, e.Step)
	case step.UpToDate:
		r.line(e.At, e.Step+": up to date")
	}
}

func (r *plain) progress(s *plainStep, at time.Time) {
	s.told = at
	text := s.name + ": " + Took(at.Sub(s.started))
	if s.message != "" {
		text += ", " + s.message
	}
	if sum, several := r.moving.sum(); several {
		text += "; total " + sum.String()
	}
	r.line(at, strings.Join(append([]string{text}, s.doing...), "\n"))
}

func (r *plain) line(at time.Time, text string) { fmt.Fprint(r.out, Lines("+++", at, text)) }

func (r *plain) Close() { close(r.stop) }

// Lines formats a text as the previous scripts did.
func Lines(mark string, at time.Time, text string) string {
	return fmt.Sprintf("%s [%s] %s\n", mark, at.Format("0102 15:04:05"), Indented(text))
}

// Indented indents all lines of a text but the first, and makes it Printable.
func Indented(text string) string {
	return strings.ReplaceAll(strings.TrimRight(Printable(text), "\n"), "\n", "\n    ")
}

const keptLogs = 20

// log writes plain lines to a file, with the errors of failed steps.
type log struct {
	open  func() (io.WriteCloser, error) // nil once called
	file  io.WriteCloser                 // nil: writes nothing
	lines *plain
}

// NewLog returns a reporter that writes a log to file and closes it at the end.
func NewLog(file io.WriteCloser) Reporter { return &log{file: file, lines: newPlain(file, quiet)} }

// NewLateLog returns a reporter that writes a log to the file that open returns when the first
// step starts: a run that changes nothing leaves none. If open fails, it writes nothing: no
// work depends on the log.
func NewLateLog(open func() (io.WriteCloser, error)) Reporter { return &log{open: open} }

func (l *log) Event(e step.Event) {
	if l.open != nil && e.Kind == step.Started && e.Stage >= 0 {
		if file, err := l.open(); err == nil {
			l.file, l.lines = file, newPlain(file, quiet)
		}
		l.open = nil
	}
	if l.file == nil {
		return
	}
	l.lines.Event(e)
	if e.Kind == step.Failed {
		l.lines.line(e.At, e.Err.Error())
	}
}

func (l *log) Close() {
	if l.file != nil {
		l.lines.Close()
		_ = l.file.Close() // a full disk must not fail the run
	}
}

// CreateLog creates a log in dir that only root can read, and removes the oldest logs there.
func CreateLog(dir, command string, at time.Time) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.log"))
	slices.Sort(old) // by time, as their names begin with it
	for _, path := range old[:max(len(old)-keptLogs+1, 0)] {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return nil, err
	}
	return OpenLog(filepath.Join(dir, at.UTC().Format("20060102T150405Z")+"-"+command+".log"))
}

// OpenLog opens a log, and appends to an existing one.
func OpenLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}
