package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
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
// first, which has no vote and so can not harm the others, and a voter once it
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
	return strings.TrimSpace(string(data)), err
}

func (m Member) join(ctx context.Context) error {
	client, err := m.peers(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	docker, err := m.Docker()
	if err != nil {
		return err
	}
	if err := m.enter(ctx, client, docker); err != nil {
		return err
	}
	c, err := m.container()
	if err != nil {
		return err
	}
	if err := errors.Join(m.Files.MkdirPrivate(dataDir), docker.Run(ctx, c)); err != nil {
		return err
	}
	if err := m.promote(ctx, client, docker); err != nil {
		return err
	}
	return m.ready(ctx, docker)
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
func (m Member) enter(ctx context.Context, client *clientv3.Client, docker *host.Docker) error {
	own, err := m.find(ctx, client)
	if err != nil {
		return err
	}
	cluster, err := m.joined()
	if err != nil {
		return err
	}
	switch {
	case own != nil && cluster != "" && m.hasData():
		return nil // goes on where it was stopped
	case own != nil && cluster != "" && own.Name == "":
		return nil // added and never started
	case own != nil:
		if _, err := client.MemberRemove(ctx, own.ID); err != nil {
			return fmt.Errorf("remove what is left of an earlier member %s: %w", m.Name, err)
		}
	}
	if err := errors.Join(docker.Remove(ctx, container), m.Files.RemoveAll(dataDir), m.Files.Remove(joinedFile)); err != nil {
		return err
	}
	return m.add(ctx, client)
}

func (m Member) hasData() bool { return m.Files.Exists(dataDir + "/member/wal") }

// find returns this host among the members. A voter of the same name at
// another address is another host.
func (m Member) find(ctx context.Context, client *clientv3.Client) (*etcdserverpb.Member, error) {
	var list *clientv3.MemberListResponse
	err := step.Until(ctx, m.limit(), func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		list, err = client.MemberList(ctx)
		return err
	}, nil)
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

// add waits for its turn: etcd lets one learner in at a time, and none while a
// member is not connected.
func (m Member) add(ctx context.Context, client *clientv3.Client) error {
	var added *clientv3.MemberAddResponse
	var final error
	err := step.Until(ctx, m.limit(), func(ctx context.Context) (err error) {
		added, err = client.MemberAddAsLearner(ctx, []string{m.url(2380)})
		if err != nil && !notYet(err) {
			final = err
			return nil
		}
		return err
	}, nil)
	if err = errors.Join(final, err); err != nil {
		return fmt.Errorf("add this host to the members of etcd: %w", err)
	}
	return m.Files.Write(joinedFile, []byte(m.initialCluster(added)+"\n"), 0o600)
}

func notYet(err error) bool {
	for _, passing := range []error{
		rpctypes.ErrTooManyLearners, rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted,
		rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrTimeout, rpctypes.ErrMemberLearnerNotReady,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// initialCluster names every member as it is now; etcd compares.
func (m Member) initialCluster(added *clientv3.MemberAddResponse) string {
	var all []string
	for _, member := range added.Members {
		name := member.Name
		if member.ID == added.Member.ID {
			name = m.Name
		}
		for _, url := range member.PeerURLs {
			all = append(all, name+"="+url)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// promote gives the member its vote, as soon as the leader finds that it has
// caught up.
func (m Member) promote(ctx context.Context, client *clientv3.Client, docker *host.Docker) error {
	var final error
	err := step.Until(ctx, m.limit(), func(ctx context.Context) error {
		own, err := m.find(ctx, client)
		if err != nil {
			return err
		}
		if own == nil {
			final = errors.New("another host has taken this one out of etcd; run the same command again")
			return nil
		}
		if !own.IsLearner {
			return nil
		}
		_, err = client.MemberPromote(ctx, own.ID)
		return err
	}, func() string { return m.logTail(docker) })
	if err = errors.Join(final, err); err != nil {
		return fmt.Errorf("catch up with etcd: %w", err)
	}
	return nil
}
