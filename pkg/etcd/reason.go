package etcd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// reasonPause is the interval of checks whether etcd has ended.
const reasonPause = 250 * time.Millisecond

// ended returns the problem that prevents etcd from starting, from the log of
// its last run. It returns nil if etcd runs or was stopped, or if the log has
// no reason [etcd-data, etcd-disk, etcd-start].
func (m Member) ended(ctx context.Context) error {
	log, failed, err := m.service().LastRun(ctx)
	if err != nil || !failed {
		return nil
	}
	return m.problemIn(log)
}

// watch returns etcd's reason as soon as etcd has ended because of damaged
// data or a full disk, and otherwise the result of Service.Watch.
func (m Member) watch(ctx context.Context) error {
	err := step.Watching(ctx, m.service().Watch, func(ctx context.Context) error {
		for {
			err := m.ended(ctx)
			for _, problem := range step.Problems(err) {
				if problem.Name != "etcd-start" {
					return err
				}
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(reasonPause):
			}
		}
	})
	switch {
	case err == nil, ctx.Err() != nil:
		return nil
	case len(step.Problems(err)) > 0:
		return err
	}
	return cmp.Or(m.ended(ctx), err)
}

// line is a line of etcd's log.
type line struct {
	Level string `json:"level"`
	Msg   string `json:"msg"`
	Error string `json:"error"`
}

func (l line) String() string {
	if l.Error == "" {
		return l.Msg
	}
	return l.Msg + ": " + l.Error
}

// badFlag returns the complaint about a flag or its value. etcd then prints its
// usage.
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

// lastComplaint returns the last fatal line or panic of a log, else the last
// error.
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
	if fatal != "" {
		return fatal
	}
	return failed
}

func (m Member) problemIn(log string) error {
	if reason := badFlag(log); reason != "" {
		return &step.Problem{Name: "etcd-start", Firm: true, Text: "etcd does not start: " + reason,
			Remedy: "correct the flag in components.etcd.extraArgs or --etcd-arg"}
	}
	reason := lastComplaint(log)
	if reason == "" {
		return nil
	}
	problem := &step.Problem{Name: "etcd-start", Firm: true, Text: "etcd does not start: " + reason, Remedy: "solve this, and run the same command again"}
	switch {
	case says(reason, "no space left on device", "disk quota exceeded"):
		problem.Name, problem.Remedy = "etcd-disk", m.diskRemedy()
	case says(reason, "wal", "snap", "database", "bolt", "crc"):
		problem.Name, problem.Remedy = "etcd-data", m.dataRemedy()
	case says(log, "\npanic: ") && says(log, ".wal.broken"):
		problem.Name, problem.Remedy = "etcd-data", m.dataRemedy()
		problem.Text = "etcd does not start: its WAL was damaged (" + DataDir + "/member/wal/*.wal.broken), and etcd crashes without it: " + reason
	}
	return problem
}

// says reports whether a text contains one of the words.
func says(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(text), word) })
}

func (m Member) diskRemedy() string {
	free, err := m.Files.FreeBytes(DataDir)
	if err != nil {
		return "free space below " + DataDir
	}
	return fmt.Sprintf("free space on the file system of %s, which has %d MiB left, and run the same command again", DataDir, free>>20)
}

func (m Member) dataRemedy() string {
	if len(m.Peers) > 0 {
		return "run `kube-bootstrap turndown --force` on this host and join it again: the other members have the data"
	}
	return "restore " + DataDir + " from a backup, or remove the cluster with `kube-bootstrap turndown`"
}

// alarms returns the problem for which etcd refuses writes: its database has
// reached the quota or is corrupt [etcd-space, etcd-data].
func (m Member) alarms(ctx context.Context, client *clientv3.Client) error {
	list, err := client.AlarmList(ctx)
	if err != nil {
		return nil // another check reports that etcd does not answer
	}
	var errs []error
	for _, alarm := range list.Alarms {
		switch alarm.Alarm {
		case etcdserverpb.AlarmType_NOSPACE:
			errs = append(errs, m.fullProblem(ctx, client))
		case etcdserverpb.AlarmType_CORRUPT:
			errs = append(errs, m.corruptProblem(ctx, client, alarm.MemberID))
		}
	}
	return errors.Join(errs...)
}

// corruptProblem returns a problem that names the member with different data.
// etcd refuses reads and writes until that member is removed.
func (m Member) corruptProblem(ctx context.Context, client *clientv3.Client, id uint64) error {
	name := fmt.Sprintf("%x", id)
	if members, err := client.MemberList(ctx); err == nil {
		for _, member := range members.Members {
			if member.ID == id {
				name = member.Name
			}
		}
	}
	p := &step.Problem{Name: "etcd-data", Firm: true, Text: "etcd has found the data of its member " + name + " to be corrupt", Remedy: m.dataRemedy()}
	if name != m.Name && len(m.Peers) > 0 {
		p.Remedy = "run `kube-bootstrap turndown --force` on " + name + " and join it again: the other members have the data"
	}
	return p
}

func (m Member) fullProblem(ctx context.Context, client *clientv3.Client) error {
	size := ""
	if status, err := client.Status(ctx, m.url(2379)); err == nil {
		size = fmt.Sprintf(": %d MiB, of which %d MiB are in use", status.DbSize>>20, status.DbSizeInUse>>20)
	}
	return &step.Problem{Name: "etcd-space", Firm: true, Text: fmt.Sprintf("etcd refuses writes, because its database has reached the quota of %d MiB%s", m.quota()>>20, size),
		Remedy: "delete objects that nobody needs (events, completed jobs), then run `kube-bootstrap master`, which compacts the database"}
}

// Room is the step that makes etcd accept writes again after its database had
// reached the quota. It compacts the history of keys, as the API server does
// every five minutes, and defragments the database. It removes no key.
func (m Member) Room() step.Step {
	return step.Step{
		Name: "keep etcd below its quota",
		Check: func(ctx context.Context) (step.Diff, error) {
			return m.Look(ctx, nil, func(ctx context.Context, client *clientv3.Client) (step.Diff, error) {
				if err := m.alarms(ctx, client); err != nil {
					return step.Diff{err.Error()}, nil
				}
				return nil, nil
			})
		},
		Apply: func(ctx context.Context) error {
			client, err := m.Client(ctx)
			if err != nil {
				return err
			}
			defer client.Close()
			return m.makeRoom(ctx, client)
		},
	}
}

// makeRoom does not clear an alarm of corrupt data, because etcd would
// continue with that data.
func (m Member) makeRoom(ctx context.Context, client *clientv3.Client) error {
	list, err := client.AlarmList(ctx)
	if err != nil {
		return err
	}
	for _, alarm := range list.Alarms {
		if alarm.Alarm == etcdserverpb.AlarmType_CORRUPT {
			return m.corruptProblem(ctx, client, alarm.MemberID)
		}
	}
	now, err := client.Get(ctx, "health")
	if err != nil {
		return err
	}
	if _, err := client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !strings.Contains(err.Error(), "compacted") {
		return fmt.Errorf("compact etcd: %w", err)
	}
	members, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, member := range members.Members {
		if _, err := client.Defragment(ctx, member.ClientURLs[0]); err != nil {
			return fmt.Errorf("defragment etcd member %s: %w", member.Name, err)
		}
	}
	status, err := client.Status(ctx, m.url(2379))
	if err != nil {
		return err
	}
	if status.DbSize > m.quota()/10*9 {
		return m.fullProblem(ctx, client)
	}
	for _, alarm := range list.Alarms {
		if _, err := client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return fmt.Errorf("clear the alarm of etcd: %w", err)
		}
	}
	return m.alarms(ctx, client)
}
