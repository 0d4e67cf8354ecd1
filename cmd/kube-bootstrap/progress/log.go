package progress

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// keptLogs is the number of logs that remain in a directory.
const keptLogs = 20

// log writes plain lines to a file, with the errors of failed steps.
type log struct {
	file  io.WriteCloser
	lines *plain
}

// NewLog returns a reporter that writes a log to file and closes it at the end.
func NewLog(file io.WriteCloser) Reporter { return &log{file, newPlain(file, quiet)} }

func (l *log) Event(e step.Event) {
	l.lines.Event(e)
	if e.Kind == step.Failed {
		l.lines.line(e.At, e.Err.Error())
	}
}

func (l *log) Close() {
	l.lines.Close()
	_ = l.file.Close() // a full disk must not fail the run
}

// lateLog creates its log when the first step starts, so that a run that changes
// nothing leaves none.
type lateLog struct {
	open   func() (io.WriteCloser, error)
	opened bool
	log    Reporter
}

// NewLateLog returns a reporter that writes a log to the file that open returns when
// the first step starts. If open fails, it writes nothing: no work depends on the log.
func NewLateLog(open func() (io.WriteCloser, error)) Reporter {
	return &lateLog{open: open, log: All{}}
}

func (l *lateLog) Event(e step.Event) {
	if e.Kind == step.Started && e.Stage >= 0 && !l.opened {
		l.opened = true
		if file, err := l.open(); err == nil {
			l.log = NewLog(file)
		}
	}
	l.log.Event(e)
}

func (l *lateLog) Close() { l.log.Close() }

// CreateLog creates the log of a run of a command in dir, which only root can
// read, and removes the oldest logs there.
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
