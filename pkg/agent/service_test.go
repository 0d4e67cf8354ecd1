package agent

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// initSystem is a host's init system of that name, which has started nothing.
type initSystem struct {
	initsystem.Units
	name string
}

func (i initSystem) Init() string { return i.name }

func testService(t *testing.T, init string) Installation {
	t.Helper()
	files := host.Files{Root: t.TempDir()}
	return Installation{
		Files: files, Units: initSystem{name: init}, Program: "/bin/kube-bootstrap",
		Records: func() ([]host.File, error) { return []host.File{{Path: "/settings", Data: []byte("x")}}, nil },
		Answers: func(context.Context) error { return nil },
	}
}

func TestAFreshHostLacksTheAgent(t *testing.T) {
	for init, path := range map[string]string{
		"systemd": "/etc/systemd/system/kube-bootstrap-agent.service",
		"openrc":  "/etc/init.d/kube-bootstrap-agent",
		"sysv":    "/etc/init.d/kube-bootstrap-agent",
	} {
		diff, err := testService(t, init).check(t.Context())
		want := []string{"write /settings", "write " + path, "enable kube-bootstrap-agent at boot", "start kube-bootstrap-agent"}
		if err != nil || strings.Join(diff, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %q, %v", init, diff, err)
		}
	}
}

// copyOf installs a program that runs until it is killed.
func copyOf(t *testing.T, s Installation, program string) {
	t.Helper()
	path, err := exec.LookPath(program)
	must.NoError(t, err)
	data := must.Read(t, path)
	must.NoError(t, s.Files.Write(s.Program, data, 0o755))
}

func TestAnAgentOfAnotherProgramIsRestarted(t *testing.T) {
	s := testService(t, "systemd")
	copyOf(t, s, "sleep")
	tree, err := s.tree()
	must.NoError(t, err)
	must.NoError(t, s.Files.Put(append(tree, host.File{Path: "/etc/systemd/system/multi-user.target.wants/kube-bootstrap-agent.service"})))
	agent := exec.Command(s.Files.Path(s.Program), "1000")
	must.NoError(t, agent.Start())
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	must.NoError(t, s.Files.Write(pidFile, []byte(strconv.Itoa(agent.Process.Pid)), 0o644))
	must.Until(t, "start a program", func() bool { runs, _ := s.process(); return runs })
	if diff, err := s.check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("it runs: %q, %v", diff, err)
	}
	copyOf(t, s, "sleep") // a newer one in its place
	if diff, err := s.check(t.Context()); err != nil || len(diff) != 1 || !strings.Contains(diff[0], "another program") {
		t.Errorf("another program: %q, %v", diff, err)
	}
}

// The script for sysv is also the parent of the agent, because sysv's init
// restarts nothing.
func TestSysvScriptRestartsTheAgent(t *testing.T) {
	dir := t.TempDir()
	starts := filepath.Join(dir, "starts")
	program := filepath.Join(dir, "agent")
	write(t, program, "#!/bin/sh\necho $$ >>"+starts+"\nexec sleep 1000\n")
	s := testService(t, "sysv")
	s.Program = program
	script := filepath.Join(dir, "script")
	tree, err := s.tree()
	must.NoError(t, err)
	write(t, script, string(tree[len(tree)-1].Data))
	parent := exec.Command("/bin/sh", script, "supervise")
	must.NoError(t, parent.Start())
	pids := func() []string { data, _ := os.ReadFile(starts); return strings.Fields(string(data)) }
	for n := 1; n <= 2; n++ {
		must.Until(t, "start the agent", func() bool { return len(pids()) == n })
		if n == 1 {
			kill(t, pids()[0])
		}
	}
	must.NoError(t, parent.Process.Signal(syscall.SIGTERM))
	if err := parent.Wait(); err != nil {
		t.Error(err)
	}
	last, _ := strconv.Atoi(pids()[1])
	if err := syscall.Kill(last, 0); err == nil {
		t.Error("the agent outlived the end of its service")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	must.NoError(t, err)
	must.NoError(t, syscall.Kill(n, syscall.SIGKILL))
}
