package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"regexp"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// joinedFile has the cluster that this member joined, as its first start was
// told: while the file is there, the member has been added.
const joinedFile = host.StateDir + "/etcd-cluster"

// Join makes this host's etcd a member of a cluster that is there: a learner
// first, which has no vote and so cannot harm the others, and a voter once it
// has caught up. It does no more than Start on a host that has joined.
//
//	added as learner ──▶ cluster written down ──▶ etcd runs ──▶ caught up, promoted ──▶ answers
func (m Member) Join() step.Step {
	return step.Step{Name: "join etcd", Check: m.checkJoined, Apply: m.join, Undo: m.undo}
}

func (m Member) checkJoined(ctx context.Context) (step.Diff, error) {
	cluster, err := m.joined()
	if err != nil {
		return nil, err
	}
	diff, err := m.check(ctx)
	if err == nil && cluster == "" {
		diff = append(step.Diff{"add " + m.Name + " to the members of etcd"}, diff...)
	}
	return diff, err
}

// joined returns the cluster that this member joined; empty if it did not.
func (m Member) joined() (string, error) {
	data, err := m.Files.Read(joinedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	cluster := strings.TrimSpace(string(data))
	if !clusterForm.MatchString(cluster) {
		cluster = "" // damaged
	}
	return cluster, err
}

// clusterForm is that of etcd's --initial-cluster.
var clusterForm = regexp.MustCompile(`^[^=,\s]+=https://[^=,\s]+(,[^=,\s]+=https://[^=,\s]+)*$`)

func (m Member) join(ctx context.Context) error {
	client, err := m.peers(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := m.enter(ctx, client); err != nil {
		return err
	}
	if err := m.run(ctx); err != nil {
		return err
	}
	if err := step.Watching(ctx, m.watch, func(ctx context.Context) error { return m.promote(ctx, client) }); err != nil {
		return err
	}
	return m.ready(ctx)
}

// peers connects to the other members.
func (m Member) peers(ctx context.Context) (*clientv3.Client, error) {
	var endpoints []string
	for _, ip := range m.Peers {
		if ip != m.IP {
			endpoints = append(endpoints, "https://"+net.JoinHostPort(ip, "2379"))
		}
	}
	if len(endpoints) == 0 {
		return nil, errors.New("no other control plane is known; name one with --master-ip")
	}
	return m.Access().Client(ctx, endpoints...)
}

// enter sees to it that the cluster has this member and that the member knows
// the cluster. One that is listed but has lost its data, or never started, is
// taken out first: it could never catch up under its old identity.
func (m Member) enter(ctx context.Context, client *clientv3.Client) error {
	own, err := m.await(ctx, client)
	if err != nil {
		return err
	}
	cluster, err := m.joined()
	if err != nil {
		return err
	}
	switch {
	case own != nil && cluster != "" && m.HasData():
		return nil // goes on where it was stopped
	case own != nil && cluster != "" && own.Name == "":
		return nil // added and never started
	case own != nil && m.HasData():
		return m.noteCluster(ctx, client) // only the note was lost
	case own != nil:
		which := func(member *clientv3.Member) bool { return member.ID == own.ID }
		if err := retry(ctx, func(ctx context.Context) error { return remove(ctx, client, which) }, nil); err != nil {
			return fmt.Errorf("remove what is left of an earlier member %s: %w", m.Name, err)
		}
	}
	if err := errors.Join(m.service().Remove(ctx), m.removeData()); err != nil {
		return err
	}
	return m.add(ctx, client)
}

// HasData reports whether a member has run on this host.
func (m Member) HasData() bool { return m.Files.Exists(DataDir + "/member") }

// noteCluster writes down the cluster as its members are now.
func (m Member) noteCluster(ctx context.Context, client *clientv3.Client) error {
	list, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	return m.Files.Write(joinedFile, []byte(m.initialCluster(list.Members)+"\n"), 0o600)
}

// find returns this host among the members. A voter of the same name at
// another address is another host.
func (m Member) find(ctx context.Context, client *clientv3.Client) (*etcdserverpb.Member, error) {
	list, err := client.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask %s for the members of etcd: %w", strings.Join(client.Endpoints(), ", "), err)
	}
	for _, member := range list.Members {
		if slices.Contains(member.PeerURLs, m.url(2380)) {
			return member, nil
		}
		if member.Name == m.Name && !member.IsLearner {
			return nil, &step.Problem{Name: "host-name",
				Text:   fmt.Sprintf("a control plane called %s is at %s already", m.Name, strings.Join(member.PeerURLs, ", ")),
				Remedy: "give this host another --host-name, or turn that one down first"}
		}
		if member.Name == m.Name {
			return member, nil // a learner that came from another address
		}
	}
	return nil, nil
}

// await is find on an etcd that may be without a leader just now.
func (m Member) await(ctx context.Context, client *clientv3.Client) (own *etcdserverpb.Member, err error) {
	err = retry(ctx, func(ctx context.Context) (err error) {
		own, err = m.find(ctx, client)
		return err
	}, nil)
	return own, err
}

// add waits for its turn: etcd lets one learner in at a time. To ask it again
// and again would keep it from giving the other its vote, as of such changes one
// that is under way drops the next.
func (m Member) add(ctx context.Context, client *clientv3.Client) error {
	var cluster string
	err := retry(ctx, func(ctx context.Context) error {
		list, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		if cluster = m.initialCluster(list.Members); cluster != "" {
			return nil
		}
		for _, other := range list.Members {
			if other.IsLearner {
				return fmt.Errorf("waits for %s %v, which is about to join", other.Name, other.PeerURLs)
			}
		}
		if _, err = client.MemberAddAsLearner(ctx, []string{m.url(2380)}); err != nil {
			return err
		}
		return errAdded
	}, nil)
	if err != nil {
		return fmt.Errorf("add this host to the members of etcd: %w", err)
	}
	return m.Files.Write(joinedFile, []byte(cluster+"\n"), 0o600)
}

// errAdded has the members asked for once more, this host among them.
var errAdded = errors.New("added")

// retry repeats try until it succeeds or fails with a permanent error.
func retry(ctx context.Context, try func(context.Context) error, explain func() string) error {
	return step.Until(ctx, func(ctx context.Context) error {
		err := try(ctx)
		if len(step.Problems(err)) > 0 || lasting(err) {
			return step.Final(err)
		}
		return err
	}, explain)
}

// lasting errors are those that no waiting helps against.
func lasting(err error) bool {
	return errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrMemberBadURLs) || errors.Is(err, errGone)
}

// initialCluster names every member as it is now, which etcd compares; empty
// if this host is none of them.
func (m Member) initialCluster(members []*etcdserverpb.Member) string {
	var all []string
	found := false
	for _, member := range members {
		name := member.Name
		if slices.Contains(member.PeerURLs, m.url(2380)) {
			name, found = m.Name, true
		}
		for _, url := range member.PeerURLs {
			all = append(all, name+"="+url)
		}
	}
	if !found {
		return ""
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// errGone is that another host took this one out while it joined.
var errGone = errors.New("another host has taken this one out of etcd; run the same command again")

// promote gives the member its vote, as soon as the leader finds that it has
// caught up.
func (m Member) promote(ctx context.Context, client *clientv3.Client) error {
	err := retry(ctx, func(ctx context.Context) error {
		own, err := m.find(ctx, client)
		switch {
		case err != nil:
			return err
		case own == nil:
			return errGone
		case !own.IsLearner:
			return nil
		}
		if err := toLeader(ctx, client); err != nil {
			return err
		}
		_, err = client.MemberPromote(ctx, own.ID)
		return err
	}, func() string { return m.logTail(ctx) })
	if err != nil {
		return fmt.Errorf("catch up with etcd: %w", err)
	}
	return nil
}
