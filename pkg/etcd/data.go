package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// DataDir is the data directory of etcd on a host.
	DataDir = host.StateDir + "/etcd"
	// startedFile contains the newest version of etcd that has used the data. It is
	// written before that etcd starts, because an older one cannot read the data then.
	startedFile = host.StateDir + "/etcd-version"
	// joinedFile contains the --initial-cluster of this member once it has been added.
	joinedFile = host.StateDir + "/etcd-cluster"
	// LeftFile exists from the moment this host has left the cluster until it joins again:
	// the other members do not answer it any more.
	LeftFile = host.StateDir + "/etcd-left"
)

var (
	startedForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9A-Za-z.-]+$`)
	// clusterForm is the format of etcd's --initial-cluster.
	clusterForm = regexp.MustCompile(`^[^=,\s]+=https://[^=,\s]+(,[^=,\s]+=https://[^=,\s]+)*$`)
)

// HasData reports whether a member has run on this host.
func HasData(files host.Files) bool { return files.Exists(DataDir + "/member") }

// hasWAL reports whether this host has a write-ahead log, with which etcd continues.
// Without it, etcd starts as a new member. A failed start may leave other files.
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/bootstrap.go#L302-L309
func hasWAL(files host.Files) bool { return len(files.Match(DataDir+"/member/wal/*.wal")) > 0 }

// Started returns the version in startedFile, or "".
func Started(files host.Files) (string, error) { return readText(files, startedFile, startedForm) }

// joined returns the content of joinedFile, or "".
func joined(files host.Files) (string, error) { return readText(files, joinedFile, clusterForm) }

// readText returns the content of a file, or "" if the file is missing or
// damaged: the next start writes it again.
func readText(files host.Files, path string, form *regexp.Regexp) (string, error) {
	data, err := files.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	text := strings.TrimSpace(string(data))
	if !form.MatchString(text) {
		text = ""
	}
	return text, err
}

// noteVersion records the version of an etcd before it starts.
func noteVersion(files host.Files, version string) error {
	newest, err := Started(files)
	if err != nil || newest == version || newest != "" && catalog.CheckEtcdChange(newest, version) != nil {
		return err
	}
	return files.Write(startedFile, []byte(version+"\n"), 0o600)
}

// removeData removes the data and the records of the member of this host. joinedFile
// goes first: with it, etcd would start with a part of its data after an interrupt.
func removeData(files host.Files) error {
	if err := files.Remove(joinedFile); err != nil {
		return err
	}
	return errors.Join(files.RemoveAll(DataDir), files.Remove(startedFile))
}

// Room is the step that makes etcd accept writes again after its database had reached
// the quota. It compacts the history and defragments the database. It removes no key.
func (s Server) Room() step.Step {
	return s.Step("etcd-room", "keep etcd below its quota", nil, func(ctx context.Context, client *clientv3.Client) (step.Diff, error) {
		if err := s.alarms(ctx, client); err != nil {
			return step.Diff{err.Error()}, nil
		}
		return nil, nil
	}, s.makeRoom)
}

// alarms returns the problem for which etcd refuses writes: its database has
// reached the quota or is corrupt [etcd-space, etcd-data].
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/apply/uber_applier.go#L70-L79
func (s Server) alarms(ctx context.Context, client *clientv3.Client) error {
	list, err := client.AlarmList(ctx)
	if err != nil {
		return nil // another check reports that etcd does not answer
	}
	return host.Each(list.Alarms, func(alarm *etcdserverpb.AlarmMember) error {
		switch alarm.Alarm {
		case etcdserverpb.AlarmType_NOSPACE:
			return s.fullProblem(ctx, client)
		case etcdserverpb.AlarmType_CORRUPT:
			return s.corruptProblem(ctx, client, alarm.MemberID)
		}
		return nil
	})
}

// corruptProblem names the member whose removal makes etcd read and write again.
func (s Server) corruptProblem(ctx context.Context, client *clientv3.Client, id uint64) error {
	name := fmt.Sprintf("%x", id)
	if members, err := client.MemberList(ctx); err == nil {
		for _, member := range members.Members {
			if member.ID == id {
				name = member.Name
			}
		}
	}
	p := &step.Problem{Name: "etcd-data", Firm: true, Text: "etcd has found the data of its member " + name + " to be corrupt", Remedy: s.dataRemedy()}
	if name != s.Name && len(s.Peers) > 0 {
		p.Remedy = "run `kube-bootstrap turndown --force` on " + name + " and join it again: the other members have the data"
	}
	return p
}

func (s Server) fullProblem(ctx context.Context, client *clientv3.Client) error {
	size := ""
	if status, err := client.Status(ctx, s.URL()); err == nil {
		size = fmt.Sprintf(": %d MiB, of which %d MiB are in use", status.DbSize>>20, status.DbSizeInUse>>20)
	}
	return &step.Problem{Name: "etcd-space", Firm: true, Text: fmt.Sprintf("etcd refuses writes, because its database has reached the quota of %d MiB%s", s.quota()>>20, size),
		Remedy: "delete objects that nobody needs (events, completed jobs), then run `kube-bootstrap master`, which compacts the database"}
}

// makeRoom does nothing without an alarm. It keeps an alarm of corrupt data: without it
// etcd would continue with them.
func (s Server) makeRoom(ctx context.Context, client *clientv3.Client) error {
	list, err := client.AlarmList(ctx)
	if err != nil || len(list.Alarms) == 0 {
		return err
	}
	for _, alarm := range list.Alarms {
		if alarm.Alarm == etcdserverpb.AlarmType_CORRUPT {
			return s.corruptProblem(ctx, client, alarm.MemberID)
		}
	}
	if err := compact(ctx, client); err != nil {
		return err
	}
	if err := defragment(ctx, client, s.Name, s.URL()); err != nil {
		return err
	}
	left := defragmentOthers(ctx, client, s.URL())
	status, err := client.Status(ctx, s.URL())
	if err != nil {
		return err
	}
	if status.DbSize > s.quota()/10*9 {
		return s.fullProblem(ctx, client)
	}
	for _, alarm := range list.Alarms {
		if _, err := client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return fmt.Errorf("clear the alarm of etcd: %w", err)
		}
	}
	if err := s.alarms(ctx, client); err != nil {
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
	if _, err := client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !strings.Contains(err.Error(), "compacted") {
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
