package console

import (
	"io"
	"os"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// logs is where a run keeps its log, unless it changes nothing.
type logs struct {
	file    string // of --log-file; empty: in host.LogDir, see KeepLog
	command string // empty: the command keeps no log by itself
	kept    string // path of the log of this run, once it exists
}

// KeepLog makes the run of a command that changes this host keep a log, which
// turndown removes. path is the path of the command: "kube-bootstrap certs renew".
func (con *Console) KeepLog(path string) {
	con.logs.command = strings.Join(strings.Fields(path)[1:], "-")
}

// newLog returns the reporter that writes the log of this run.
func (con *Console) newLog() (progress.Reporter, error) {
	if con.logs.file != "" {
		file, err := progress.OpenLog(con.logs.file)
		return progress.NewLog(func() (io.WriteCloser, error) { return file, nil }), err
	}
	if con.logs.command == "" {
		return progress.All{}, nil
	}
	return progress.NewLog(func() (io.WriteCloser, error) {
		file, err := progress.CreateLog(host.LogDir, con.logs.command, time.Now())
		if err == nil {
			con.logs.kept = file.Name()
		}
		return file, err
	}), nil
}

// TellLog prints where the log of a failed run is.
func (con *Console) TellLog() {
	if _, err := os.Stat(con.logs.kept); err == nil && con.Mode() != "json" {
		con.Say("the log of this run is " + con.logs.kept)
	}
}
