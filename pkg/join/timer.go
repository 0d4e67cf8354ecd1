package join

import (
	"context"
	"errors"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	approveUnit  = "kube-bootstrap-approve"
	approveDir   = "/etc/systemd/system/"
	approveCron  = "/etc/cron.d/" + approveUnit
	approveLink  = approveDir + "timers.target.wants/" + approveUnit + ".timer"
	timerService = `[Unit]
Description=Approve serving certificates of this cluster's kubelets
After=docker.service

[Service]
Type=oneshot
ExecStart=BINARY approve
`
	timerTimer = `[Unit]
Description=Approve serving certificates of this cluster's kubelets, now and then

[Timer]
OnBootSec=10s
OnUnitInactiveSec=10s
AccuracySec=1s

[Install]
WantedBy=timers.target
`
)

// Approvals makes the host approve serving requests of nodes that join, and
// yearly renewals, from now on. A timer does so rather than a program that
// stays: between two looks nothing of ours runs. binary is the path of this
// program on the host.
func Approvals(files host.Files, units host.Units, binary string) step.Step {
	tree := approvalFiles(units.Init(), binary)
	return step.Step{
		Name: "approve serving certificates from now on",
		Check: func(ctx context.Context) (step.Diff, error) {
			diff, err := files.Missing(tree)
			if err != nil || len(diff) > 0 || units.Init() != "systemd" {
				return diff, err
			}
			return timerDiff(ctx, files, units)
		},
		Apply: func(ctx context.Context) error {
			if err := files.Put(tree); err != nil || units.Init() != "systemd" {
				return err
			}
			timer := approveUnit + ".timer"
			return errors.Join(units.Enable(ctx, timer), units.Reload(ctx), units.Start(ctx, timer))
		},
		Undo: func(ctx context.Context) error { return dropApprovals(ctx, files, units, tree) },
	}
}

// timerDiff compares the state of the timer. One that is only enabled is what a
// run leaves that is killed before it starts the timer.
func timerDiff(ctx context.Context, files host.Files, units host.Units) (diff step.Diff, err error) {
	if !files.Exists(approveLink) {
		diff = append(diff, "enable "+approveUnit+".timer")
	}
	active, err := units.Active(ctx, approveUnit+".timer")
	if err == nil && !active {
		diff = append(diff, "start "+approveUnit+".timer")
	}
	return diff, err
}

func dropApprovals(ctx context.Context, files host.Files, units host.Units, tree []host.File) error {
	if !files.Exists(tree[0].Path) {
		return nil
	}
	if units.Init() != "systemd" {
		return files.Drop(tree[0].Path)
	}
	timer := approveUnit + ".timer"
	if err := errors.Join(units.Disable(ctx, timer), units.Stop(ctx, timer), units.Stop(ctx, approveUnit)); err != nil {
		return err
	}
	// The file that Undo looks for goes last, so that a run cut short is seen.
	return errors.Join(files.Drop(tree[1].Path, tree[0].Path), units.Reload(ctx))
}

func approvalFiles(init, binary string) []host.File {
	if init != "systemd" {
		line := "* * * * * root " + binary + " approve >/dev/null 2>&1\n"
		return []host.File{{Path: approveCron, Data: []byte(line), Mode: 0o644}}
	}
	return []host.File{
		{Path: approveDir + approveUnit + ".service", Data: []byte(strings.ReplaceAll(timerService, "BINARY", binary)), Mode: 0o644},
		{Path: approveDir + approveUnit + ".timer", Data: []byte(timerTimer), Mode: 0o644},
	}
}
