package console

import (
	"io"
	"os"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// logs states where the log of a run is.
type logs struct {
	file string // of --log-file; empty: in host.LogDir, if the command keeps a log
	kept string // path of the log in host.LogDir, once it exists
}

// newLog returns the reporter that writes the log of a run. command is empty if the
// command keeps no log in host.LogDir.
func (con *Console) newLog(command string) (progress.Reporter, error) {
	switch {
	case con.logs.file != "":
		file, err := progress.OpenLog(con.logs.file)
		if err != nil {
			return nil, err
		}
		return progress.NewLog(file), nil
	case command == "":
		return progress.All{}, nil
	}
	return progress.NewLateLog(func() (io.WriteCloser, error) {
		file, err := progress.CreateLog(host.LogDir, command, time.Now())
		if err == nil {
			con.logs.kept = file.Name()
		}
		return file, err
	}), nil
}

// TellLog prints where the log of a failed run is.
func (con *Console) TellLog() {
	if _, err := os.Stat(con.logs.kept); err == nil && con.Mode() != "json" {
		con.Warn("the log of this run is " + con.logs.kept)
	}
}
