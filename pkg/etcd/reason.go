package etcd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd/runlog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	reasonPause = 250 * time.Millisecond // the interval of checks whether etcd has ended
	stuckPause  = 5 * time.Second        // and whether it runs but never answers
)

// ended returns the problem that prevents etcd from starting, from the log of its last
// run, or nil if etcd runs or was stopped [etcd-data, etcd-disk, etcd-start].
func (c MemberContainer) ended(ctx context.Context) error {
	log, failed, err := c.service().LastRun(ctx)
	if err != nil || !failed {
		return nil
	}
	return c.problemIn(log)
}

// watchStart returns etcd's reason as soon as damaged data or a full disk prevents it
// from starting, and otherwise the result of Service.Watch.
func (c MemberContainer) watchStart(ctx context.Context) error {
	err := step.Watching(ctx, c.service().Watch, func(ctx context.Context) error {
		return c.follow(ctx, func(p *step.Problem) bool { return p.Name != "etcd-start" })
	})
	switch {
	case err == nil, ctx.Err() != nil:
		return nil
	case len(step.Problems(err)) > 0:
		return err
	}
	return cmp.Or(c.ended(ctx), err)
}

// follow returns the first problem for which tells returns true, or why ctx has ended.
func (c MemberContainer) follow(ctx context.Context, tells func(*step.Problem) bool) error {
	ended, stuck := time.NewTicker(reasonPause), time.NewTicker(stuckPause)
	defer ended.Stop()
	defer stuck.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ended.C:
			err = c.ended(ctx)
		case <-stuck.C:
			err = c.stuck(ctx)
		}
		if slices.ContainsFunc(step.Problems(err), tells) {
			return err
		}
	}
}

// stuck returns the problem that etcd runs and never answers, because its WAL has
// lost entries that its database contains [etcd-data]. etcd 3.7 then elects itself,
// and ignores each new entry up to the index of its database.
func (c MemberContainer) stuck(ctx context.Context) error {
	log, err := c.service().Log(ctx)
	if err != nil {
		return nil
	}
	wal, database, is := runlog.LostEntries(log)
	if !is {
		return nil
	}
	return &step.Problem{Name: "etcd-data", Firm: true, Remedy: c.Member.dataRemedy(),
		Text: fmt.Sprintf("etcd does not start: its WAL ends at entry %d, but its database contains entry %d, so the "+
			"WAL was damaged", wal, database)}
}

func (c MemberContainer) problemIn(log string) error {
	if reason := runlog.BadFlag(log); reason != "" {
		return &step.Problem{Name: "etcd-start", Firm: true, Text: "etcd does not start: " + reason,
			Remedy: "correct the flag in components.etcd.extraArgs or --etcd-arg"}
	}
	reason := runlog.LastComplaint(log)
	if reason == "" {
		return nil
	}
	problem := &step.Problem{
		Name: "etcd-start", Firm: true, Text: "etcd does not start: " + reason,
		Remedy: "solve this, and run the same command again",
	}
	switch {
	case runlog.Says(reason, "no space left on device", "disk quota exceeded"),
		runlog.Says(reason, "failed to repair wal") && c.Member.Data.diskIsFull():
		problem.Name, problem.Remedy = "etcd-disk", c.Member.Data.diskRemedy()
	case runlog.Says(reason, "wal", "snap", "database", "bolt", "crc", "proto:"): // proto: no entry can be decoded
		problem.Name, problem.Remedy = "etcd-data", c.Member.dataRemedy()
	case runlog.Says(log, "\npanic: ") && runlog.Says(log, ".wal.broken"):
		problem.Name, problem.Remedy = "etcd-data", c.Member.dataRemedy()
		problem.Text = "etcd does not start: its WAL was damaged (" + DataDir +
			"/member/wal/*.wal.broken), and etcd crashes without it: " + reason
	}
	return problem
}
