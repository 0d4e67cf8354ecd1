package initsystem

import (
	"context"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Service is a daemon that kube-bootstrap installs, and that the init system starts at boot.
type Service struct {
	Files host.Files
	Units Units
	Name  string // of the unit
}

// Path returns the path of the unit file or the init script.
func (s Service) Path() string { return UnitPath(s.Units, s.Name) }

func (s Service) enabled() bool { return Enabled(s.Files, s.Units, s.Name, "multi-user.target") }

// Diff lists the files that differ from tree, and states if the service does not start at boot.
func (s Service) Diff(tree []host.File) (step.Diff, error) {
	diff, err := s.Files.Missing(tree)
	if err == nil && !s.enabled() {
		diff = append(diff, "enable "+s.Name+" at boot")
	}
	return diff, err
}

// Start writes the files, and enables and starts the service. It first stops a service that is
// stale or runs with other files, so that an interrupted run leaves it stopped or the files
// different, and the next run continues.
func (s Service) Start(ctx context.Context, tree []host.File, stale bool) error {
	diff, err := s.Files.Missing(tree)
	if err != nil {
		return err
	}
	if (stale || len(diff) > 0) && s.Files.Exists(s.Path()) {
		if err := s.Units.Stop(ctx, s.Name); err != nil {
			return err
		}
	}
	known, err := s.Units.Known(ctx, s.Name)
	if err != nil {
		return err
	}
	if err := s.Files.Put(tree); err != nil {
		return err
	}
	if !s.enabled() {
		if err := s.Units.Enable(ctx, s.Name); err != nil {
			return fmt.Errorf("enable %s: %w", s.Name, err)
		}
	}
	if !known {
		return s.Units.StartNew(ctx, s.Name)
	}
	return s.Units.Start(ctx, s.Name)
}

// LogTail returns the last 20 lines of the log, also after the end of ctx: of the journal
// with systemd, else of file.
func (s Service) LogTail(ctx context.Context, file string) string {
	ctx, cancel := step.Checking(context.WithoutCancel(ctx))
	defer cancel()
	const lines = "20"
	args := []string{"tail", "-n", lines, s.Files.Path(file)}
	if s.Units.Init() == "systemd" {
		args = []string{"journalctl", "--no-pager", "-o", "cat", "-n", lines, "-u", s.Name}
	}
	text, _ := host.Run(ctx, args...)
	return text
}
