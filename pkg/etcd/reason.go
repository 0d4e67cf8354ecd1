package etcd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

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
	wal, database, is := lostEntries(log)
	if !is {
		return nil
	}
	return &step.Problem{Name: "etcd-data", Firm: true, Remedy: c.Member.dataRemedy(),
		Text: fmt.Sprintf("etcd does not start: its WAL ends at entry %d, but its database contains entry %d, so the "+
			"WAL was damaged", wal, database)}
}

// lostEntries reads the log of a run of etcd: the WAL ends before the database, and
// etcd has failed to write since. After a power failure the index of the WAL may lag
// too, but then etcd writes. Without a leader, etcd cannot write either.
func lostEntries(log string) (wal, database int64, is bool) {
	led := false
	for text := range strings.Lines(log) {
		var l line
		if json.Unmarshal([]byte(text), &l) != nil {
			continue
		}
		led = led && !says(l.Msg, " lost leader ") || says(l.Msg, " elected leader ")
		switch l.Msg {
		case "restore consistentIndex":
			database = l.Index
		case "restarting local member":
			wal = l.Commit
		case "failed to publish local member to cluster through raft":
			is = led && wal < database
		case "published local member to cluster through raft":
			return wal, database, false
		}
	}
	return wal, database, is
}

type line struct {
	Level  string `json:"level"`
	Msg    string `json:"msg"`
	Error  string `json:"error"`
	Index  int64  `json:"index"`
	Commit int64  `json:"commit-index"`
}

func (l line) String() string {
	if l.Error == "" {
		return l.Msg
	}
	return l.Msg + ": " + l.Error
}

// badFlag returns etcd's complaint about a flag or its value.
func badFlag(log string) string {
	for text := range strings.Lines(log) {
		var l line
		text = strings.TrimSpace(text)
		switch {
		case strings.HasPrefix(text, "invalid value "), strings.HasPrefix(text, "flag provided but not defined"):
			return text
		case json.Unmarshal([]byte(text), &l) == nil && l.Msg == "failed to verify flags":
			return l.Error
		}
	}
	return ""
}

// lastComplaint returns the last fatal line or panic of a log, else the last error.
func lastComplaint(log string) string {
	var failed, fatal string
	for text := range strings.Lines(log) {
		var l line
		if crash, ok := strings.CutPrefix(text, "panic: "); ok && fatal == "" {
			fatal = strings.TrimSpace(crash)
		}
		if json.Unmarshal([]byte(text), &l) != nil {
			continue
		}
		switch l.Level {
		case "fatal", "panic":
			fatal = l.String()
		case "error":
			failed = l.String()
		}
	}
	return cmp.Or(fatal, failed)
}

func (c MemberContainer) problemIn(log string) error {
	if reason := badFlag(log); reason != "" {
		return &step.Problem{Name: "etcd-start", Firm: true, Text: "etcd does not start: " + reason,
			Remedy: "correct the flag in components.etcd.extraArgs or --etcd-arg"}
	}
	reason := lastComplaint(log)
	if reason == "" {
		return nil
	}
	problem := &step.Problem{
		Name: "etcd-start", Firm: true, Text: "etcd does not start: " + reason,
		Remedy: "solve this, and run the same command again",
	}
	switch {
	case says(reason, "no space left on device", "disk quota exceeded"), says(reason, "failed to repair wal") &&
		c.Member.Data.diskIsFull():
		problem.Name, problem.Remedy = "etcd-disk", c.Member.Data.diskRemedy()
	case says(reason, "wal", "snap", "database", "bolt", "crc", "proto:"): // the last one: an entry cannot be decoded
		problem.Name, problem.Remedy = "etcd-data", c.Member.dataRemedy()
	case says(log, "\npanic: ") && says(log, ".wal.broken"):
		problem.Name, problem.Remedy = "etcd-data", c.Member.dataRemedy()
		problem.Text = "etcd does not start: its WAL was damaged (" + DataDir +
			"/member/wal/*.wal.broken), and etcd crashes without it: " + reason
	}
	return problem
}

// says reports whether a text contains one of the words.
func says(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(text), word) })
}
