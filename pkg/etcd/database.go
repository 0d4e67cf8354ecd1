package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Database is the database of this host's member, which has a quota.
type Database struct {
	Member Member
	Quota  int64 // bytes; etcd refuses writes beyond it
}

// Room is the step that makes etcd accept writes again after its database had reached
// the quota. It compacts the history and defragments the database. It removes no key.
func (d Database) Room() step.Step {
	return d.Member.Client.Step("etcd-room", "keep etcd below its quota", nil,
		func(ctx context.Context, client *clientv3.Client) (step.Diff, error) {
			if err := d.alarms(ctx, client); err != nil {
				return step.Diff{err.Error()}, nil
			}
			return nil, nil
		}, d.makeRoom)
}

// alarms returns the problem for which etcd refuses writes: its database has
// reached the quota or is corrupt [etcd-space, etcd-data].
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/apply/uber_applier.go#L70-L79
func (d Database) alarms(ctx context.Context, client *clientv3.Client) error {
	list, err := client.AlarmList(ctx)
	if err != nil {
		return nil // another check reports that etcd does not answer
	}
	return host.Each(list.Alarms, func(alarm *etcdserverpb.AlarmMember) error {
		switch alarm.Alarm {
		case etcdserverpb.AlarmType_NOSPACE:
			return d.fullProblem(ctx, client)
		case etcdserverpb.AlarmType_CORRUPT:
			return d.corruptProblem(ctx, client, alarm.MemberID)
		}
		return nil
	})
}

// corruptProblem names the member whose removal makes etcd read and write again.
func (d Database) corruptProblem(ctx context.Context, client *clientv3.Client, id uint64) error {
	name := fmt.Sprintf("%x", id)
	if members, err := client.MemberList(ctx); err == nil {
		for _, member := range members.Members {
			if member.ID == id {
				name = member.Name
			}
		}
	}
	p := &step.Problem{
		Name: "etcd-data", Firm: true, Text: "etcd has found the data of its member " + name + " to be corrupt",
		Remedy: restoreRemedy,
	}
	if len(d.Member.Peers) > 0 {
		p.Remedy = d.Member.dataRemedy()
	}
	if name != d.Member.Name && len(d.Member.Peers) > 0 {
		p.Remedy = "run `kube-bootstrap turndown --force` on " + name +
			" and join it again: the other members have the data"
	}
	return p
}

func (d Database) fullProblem(ctx context.Context, client *clientv3.Client) error {
	size := ""
	if status, err := client.Status(ctx, d.Member.Client.URL()); err == nil {
		size = fmt.Sprintf(": %d MiB, of which %d MiB are in use", status.DbSize>>20, status.DbSizeInUse>>20)
	}
	return &step.Problem{Name: "etcd-space", Firm: true,
		Text: fmt.Sprintf("etcd refuses writes, because its database has reached the quota of %d MiB%s",
			d.Quota>>20, size),
		Remedy: "delete objects that nobody needs (events, completed jobs), then run `kube-bootstrap master`, which " +
			"compacts the database"}
}

// makeRoom does nothing without an alarm. It keeps an alarm of corrupt data: without it
// etcd would continue with them.
func (d Database) makeRoom(ctx context.Context, client *clientv3.Client) error {
	list, err := client.AlarmList(ctx)
	if err != nil || len(list.Alarms) == 0 {
		return err
	}
	for _, alarm := range list.Alarms {
		if alarm.Alarm == etcdserverpb.AlarmType_CORRUPT {
			return d.corruptProblem(ctx, client, alarm.MemberID)
		}
	}
	if err := compact(ctx, client); err != nil {
		return err
	}
	if err := defragment(ctx, client, d.Member.Name, d.Member.Client.URL()); err != nil {
		return err
	}
	left := defragmentOthers(ctx, client, d.Member.Client.URL())
	status, err := client.Status(ctx, d.Member.Client.URL())
	if err != nil {
		return err
	}
	if status.DbSize > d.Quota/10*9 {
		return d.fullProblem(ctx, client)
	}
	for _, alarm := range list.Alarms {
		if _, err := client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return fmt.Errorf("clear the alarm of etcd: %w", err)
		}
	}
	if err := d.alarms(ctx, client); err != nil {
		return errors.Join(err, left)
	}
	return nil
}

// compact removes the history of keys.
func compact(ctx context.Context, client *clientv3.Client) error {
	now, err := client.Get(ctx, "health")
	if err != nil {
		return err
	}
	if _, err := client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil &&
		!strings.Contains(err.Error(), "compacted") {
		return fmt.Errorf("compact etcd: %w", err)
	}
	return nil
}

// defragmentOthers defragments the databases of the other members, one after the other,
// because a member does not answer meanwhile. It omits members that have never started. An
// error of a member that is down does not stop it: that member can raise the alarm again.
func defragmentOthers(ctx context.Context, client *clientv3.Client, own string) error {
	members, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	return host.Each(members.Members, func(member *etcdserverpb.Member) error {
		if len(member.ClientURLs) == 0 || slices.Contains(member.ClientURLs, own) {
			return nil
		}
		err := defragment(ctx, client, member.Name, member.ClientURLs[0])
		if err != nil {
			step.Report(ctx, err.Error(), 0, 0)
		}
		return err
	})
}

func defragment(ctx context.Context, client *clientv3.Client, name, at string) error {
	if err := reaches(ctx, at); err != nil {
		return fmt.Errorf("defragment etcd member %s: %w", name, err)
	}
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	if _, err := client.Defragment(ctx, at); err != nil {
		return fmt.Errorf("defragment etcd member %s: %w", name, err)
	}
	return nil
}

// reaches dials a URL for clients once, see listens.
func reaches(ctx context.Context, at string) error {
	parsed, err := url.Parse(at)
	if err != nil {
		return err
	}
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	return listens(ctx, parsed.Hostname())
}
