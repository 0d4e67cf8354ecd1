package maindocker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// pidFile returns the file in which dockerd has written its process ID.
func pidFile(files host.Files) string {
	now, _ := readSettings(files) // preflight reports errors
	file, _ := now["pidfile"].(string)
	return cmp.Or(file, "/run/docker.pid")
}

// pidOf returns the process ID of the running dockerd; 0 if it is not known.
func pidOf(files host.Files) int {
	data, _ := files.Read(pidFile(files))                   // empty if Docker does not run
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data))) // 0 is no process
	return pid
}

// commandLine returns the arguments of the running dockerd.
func commandLine(files host.Files) []string {
	line, err := files.Read("/proc/" + strconv.Itoa(pidOf(files)) + "/cmdline")
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
}

// unitProblems returns a problem if Docker's unit shows it another part of the file system than
// this host has [docker-unit]. The kubelet mounts volumes below dir.
func unitProblems(files host.Files, dir string) error {
	pid := pidOf(files)
	if pid == 0 {
		return nil
	}
	root, err := os.Readlink(files.Path(fmt.Sprintf("/proc/%d/root", pid)))
	if errors.Is(err, fs.ErrNotExist) { // an old file
		return nil
	}
	if err != nil {
		return err
	}
	if root != "/" {
		return &step.Problem{
			Name: "docker-unit", Text: "Docker has the root directory " + root,
			Remedy: "remove RootDirectory= and RootImage= " + fromUnit,
		}
	}
	shared, err := filesystem.SharedMountIn(pid, dir)
	if err != nil || shared {
		return err
	}
	return &step.Problem{Name: "docker-unit",
		Text:   "Docker has its own mounts, in which " + dir + " is not shared, so pods would not see their volumes",
		Remedy: "remove MountFlags=slave and MountFlags=private " + fromUnit}
}

const fromUnit = "from Docker's unit (`systemctl cat docker` shows it), run `systemctl daemon-reload` and " +
	"restart Docker"

func hangs(init string, err error) error {
	return &step.Problem{Name: "docker-hangs", Text: "Docker runs, but gives no answer: " + err.Error(),
		Remedy: "look at its log, and if that does not change, restart it: " + restartCommand(init)}
}

// Hanging returns a problem if dockerd runs and does not answer, also while it starts
// [docker-hangs]. It asks for the networks, because a deadlock of Docker's network code leaves
// other requests answered (https://github.com/moby/moby/issues/50619). A connection does not start
// a Docker that is stopped, because a process runs.
func (d Daemon) Hanging(ctx context.Context) error {
	if line := commandLine(d.Files); len(line) == 0 || path.Base(line[0]) != "dockerd" {
		return nil
	}
	asking, cancel := step.Checking(ctx)
	defer cancel()
	if _, err := d.Engine().Networks(asking); unanswered(ctx, asking, err) {
		return hangs(d.Units.Init(), err)
	}
	return nil // the steps of Docker report other errors
}

// unanswered reports whether a request failed because its own limit ended. An answer may
// come at the same moment.
func unanswered(ctx, asking context.Context, err error) bool {
	return err != nil && asking.Err() != nil && ctx.Err() == nil
}
