// Package agent is the one process of kube-bootstrap that stays on a host. An
// init system starts it, and again when it ends.
//
//	                 ┌── balancer   127.0.0.1 ──▶ a control plane that is ready
//	init ──▶ agent ──┼── approver   serving certificates of kubelets (control planes)
//	                 └── repair     events ──▶ Check of their reconcilers ──▶ Apply
//
// This package installs the process, and decides when a reconciler is checked and
// repaired. What the reconcilers are is up to its caller.
package agent

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	unit          = "kube-bootstrap-agent"
	pidFile       = "/run/kube-bootstrap-agent.pid"
	superviseFile = "/run/kube-bootstrap-agent.supervise.pid"
	logFile       = "/var/log/kube-bootstrap-agent.log"
	// crashes is how many processes may start while a step waits for the agent.
	crashes = 3
)

//go:embed kube-bootstrap-agent.*
var unitFiles embed.FS

// Installation is the agent as the init system of this host knows it.
type Installation struct {
	Files   host.Files
	Units   initsystem.Units
	Program string // as the host keeps it
	// Records returns files that the agent reads only when it starts.
	Records func() ([]host.File, error)
	Answers func(context.Context) error // nil once the agent serves
	Dirs    []string                    // that hold nothing but what the agent needs
}

// StartID identifies Service.Start.
const StartID step.ID = "start-agent"

// Start installs the agent, starts it, at boot too, and returns once it serves.
// An agent of another version or with other records is restarted.
func (s Installation) Start() step.Step {
	return step.Step{ID: StartID, Name: "start the agent", Check: s.check, Apply: s.apply, Undo: s.undo}
}

func (s Installation) check(context.Context) (step.Diff, error) {
	tree, err := s.tree()
	if err != nil {
		return nil, err
	}
	diff, err := s.service().Diff(tree)
	if err != nil {
		return nil, err
	}
	switch runs, current := s.process(); {
	case !runs:
		diff = append(diff, "start "+unit)
	case !current:
		diff = append(diff, "restart "+unit+": it runs another program than "+s.Program)
	}
	return diff, nil
}

func (s Installation) apply(ctx context.Context) error {
	tree, err := s.tree()
	if err != nil {
		return err
	}
	_, current := s.process()
	if err := s.service().Start(ctx, tree, !current); err != nil {
		return err
	}
	return s.await(ctx)
}

func (s Installation) service() initsystem.Service {
	return initsystem.Service{Files: s.Files, Units: s.Units, Name: unit}
}

// await returns early if the agent crashes repeatedly.
func (s Installation) await(ctx context.Context) error {
	seen := map[int]bool{}
	tail := func() string { return s.service().LogTail(ctx, logFile) }
	return step.Until(ctx, func(ctx context.Context) error {
		seen[s.pid()] = true
		delete(seen, 0)
		if len(seen) > crashes {
			return step.Final(fmt.Errorf("the agent crashes repeatedly\n%s", tail()))
		}
		if runs, _ := s.process(); !runs {
			return errors.New("the agent does not run yet")
		}
		return s.Answers(ctx)
	}, tail)
}

func (s Installation) undo(ctx context.Context) error {
	path := s.service().Path()
	if s.Files.Exists(path) {
		if err := errors.Join(s.Units.Stop(ctx, unit), s.Units.Disable(ctx, unit)); err != nil {
			return err
		}
	}
	return errors.Join(
		s.Files.Drop(path, pidFile, superviseFile, logFile),
		host.Each(append(s.Dirs, stateDir), s.Files.RemoveAll))
}

// tree returns the files of the service: those of the init system, and the records that
// the agent reads at its start.
func (s Installation) tree() ([]host.File, error) {
	records, err := s.Records()
	if err != nil {
		return nil, err
	}
	values := map[string]any{
		"Program": s.Program, "PidFile": pidFile, "SuperviseFile": superviseFile, "LogFile": logFile,
	}
	return append(records, initsystem.ServiceFile(s.Units, unit, unitFiles, values)), nil
}

// process reports whether the agent runs, and whether from the installed program.
func (s Installation) process() (runs, current bool) {
	return process.Runs(s.Files, s.pid(), s.Program)
}

// pid returns the process that wrote the file last; 0 if none did.
func (s Installation) pid() int {
	data, _ := s.Files.Read(pidFile)                        // empty if there is none
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data))) // 0 is no process
	return pid
}

// Announce records that this process is the agent.
func Announce(files host.Files) error {
	return files.Write(pidFile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644)
}
