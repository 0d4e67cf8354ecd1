package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Join is the step that adds this host's etcd to an existing cluster: first
// as a learner, which has no vote and so cannot harm the cluster, then as a
// voter. On a host that has joined, it does the same as Start.
//
//	added as learner ──▶ joinedFile written ──▶ etcd runs ──▶ promoted ──▶ answers
func (c MemberContainer) Join() step.Step { return joiner{c, c.undo}.step() }

// Stay is Join for the agent and for renewals of certificates: it never adds a
// member. Otherwise a host that was removed while it was off would return by itself.
func (c MemberContainer) Stay() step.Step { return joiner{c, nil}.step() }

// joiner is the etcd of a host that has joined, or joins. clear removes an earlier
// etcd from this host; without it, no member is added.
type joiner struct {
	etcd  MemberContainer
	clear func(context.Context) error
}

func (j joiner) step() step.Step {
	return step.Step{ID: "join-etcd", Name: "join etcd", Check: j.check, Apply: j.apply, Undo: j.etcd.undo}
}

func (j joiner) check(ctx context.Context) (step.Diff, error) {
	member := j.etcd.Member
	cluster, err := member.Data.cluster()
	if err != nil {
		return nil, err
	}
	diff, err := j.etcd.check(ctx)
	if isRemoved(err) && j.clear != nil {
		return step.Diff{"run etcd as a member: " + err.Error()}, nil
	}
	if err == nil && cluster == "" {
		diff = append(step.Diff{"add " + member.Name + " to the members of etcd"}, diff...)
	}
	return diff, err
}

func (j joiner) apply(ctx context.Context) error {
	err := j.resume(ctx)
	if errors.Is(err, errNoMember) || isRemoved(err) && j.clear != nil {
		return j.enter(ctx)
	}
	return err
}

// errNoMember means that this host alone does not know whether it is a member.
var errNoMember = errors.New("no member has run on this host")

// removedProblem is the definite answer of etcd that this host is no member [etcd-removed].
func removedProblem() error {
	return &step.Problem{Name: "etcd-removed", Firm: true,
		Text: "the cluster continues without the etcd of this host: another host has removed it, or was recovered or " +
			"restored without it",
		Remedy: "run `kube-bootstrap turndown --force` on this host, and join it again with the command that " +
			"`kube-bootstrap token create --control-plane` on that host prints"}
}

func isRemoved(err error) bool {
	return slices.ContainsFunc(step.Problems(err), func(p *step.Problem) bool { return p.Name == "etcd-removed" })
}

// resume starts the member that has run on this host. It does not ask the others
// first, because they may need this member for a quorum. It asks nobody if this
// member is the only one.
func (j joiner) resume(ctx context.Context) error {
	member := j.etcd.Member
	cluster, err := member.Data.cluster()
	switch {
	case err != nil:
		return err
	case !member.Data.hasWAL(), cluster == "" && len(member.Peers) > 0:
		return errNoMember
	case cluster == "": // etcd ignores the value, because it has a WAL
		if err := member.Data.noteCluster(member.alone()); err != nil {
			return err
		}
	}
	return j.etcd.apply(ctx)
}

// enter has etcd run as the member that Member.enter finds or adds.
func (j joiner) enter(ctx context.Context) error {
	member := j.etcd.Member
	client, err := member.peers(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := member.enter(ctx, client, j.clear); err != nil {
		return err
	}
	if err := j.etcd.run(ctx); err != nil {
		return err
	}
	promote := func(ctx context.Context) error { return member.promote(ctx, client, j.etcd.tail(ctx)) }
	if err := step.Watching(ctx, j.etcd.watchStart, promote); err != nil {
		return err
	}
	return j.etcd.ready(ctx)
}

// enter adds this member to the cluster, unless it is a member already. It first
// removes a member that has lost its data or never started, because it could not catch
// up under its old ID. clear removes an earlier etcd from this host; without it, enter
// adds and removes nothing.
func (m Member) enter(ctx context.Context, client *clientv3.Client, clear func(context.Context) error) error {
	own, err := m.await(ctx, client)
	if err != nil {
		return err
	}
	cluster, err := m.Data.cluster()
	if err != nil {
		return err
	}
	switch {
	case own != nil && cluster != "" && m.Data.hasWAL():
		return nil // the member continues
	case own != nil && (m.Data.hasWAL() || cluster != "" && own.Name == ""):
		// joinedFile was lost, or the member was added and never started: etcd compares
		// its first start with the members of now.
		return m.noteCluster(ctx, client)
	case clear == nil && own == nil:
		return removedProblem()
	case clear == nil:
		return lostProblem()
	case own != nil:
		if err := retry(ctx, func(ctx context.Context) error { return remove(ctx, client, own.ID) }, nil); err != nil {
			return fmt.Errorf("remove the earlier member %s: %w", m.Name, err)
		}
	}
	if err := clear(ctx); err != nil {
		return err
	}
	return m.add(ctx, client)
}

// lostProblem is the problem that only a run of an administrator solves: it replaces the
// member [etcd-data].
func lostProblem() error {
	return &step.Problem{Name: "etcd-data", Firm: true, Text: "the data of etcd on this host are lost",
		Remedy: "run `kube-bootstrap master` on this host, which gets them from the other members"}
}

// noteCluster writes joinedFile from the current members.
func (m Member) noteCluster(ctx context.Context, client *clientv3.Client) error {
	list, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	return m.Data.noteCluster(m.initialCluster(list.Members))
}

// add adds this host as a learner. It waits for another learner, because etcd
// allows one at a time. It does not simply retry the request: etcd drops a
// membership change that arrives while another one is in progress, which
// could be the other learner's promotion.
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/api/membership/cluster_opts.go#L17
// https://github.com/etcd-io/raft/blob/v3.7.0/raft.go#L1326-L1341
func (m Member) add(ctx context.Context, client *clientv3.Client) error {
	if err := m.Data.Files.Remove(LeftFile); err != nil {
		return err
	}
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
				return fmt.Errorf("%s %v is joining at the same time", other.Name, other.PeerURLs)
			}
		}
		if _, err = client.MemberAddAsLearner(ctx, []string{peerURL(m.Client.IP)}); err != nil {
			return err
		}
		return errAdded
	}, nil)
	if err != nil {
		return fmt.Errorf("add this host to the members of etcd: %w", err)
	}
	return m.Data.noteCluster(cluster)
}

// errAdded makes retry read the members again, now with this host.
var errAdded = errors.New("added")

// retry repeats try until it succeeds or fails with a permanent error.
func retry(ctx context.Context, try func(context.Context) error, explain func() string) error {
	return step.Until(ctx, func(ctx context.Context) error {
		err := try(ctx)
		refused := errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrMemberBadURLs)
		if refused || len(step.Problems(err)) > 0 {
			return step.Final(err)
		}
		return err
	}, explain)
}

// promote makes the learner a voter as soon as the leader accepts that it has caught up.
func (m Member) promote(ctx context.Context, client *clientv3.Client, explain func() string) error {
	err := retry(ctx, func(ctx context.Context) error {
		own, err := m.own(ctx, client)
		if err != nil || !own.IsLearner {
			return err
		}
		if err := toLeader(ctx, client); err != nil {
			return err
		}
		_, err = client.MemberPromote(ctx, own.ID)
		return err
	}, explain)
	if err != nil {
		return fmt.Errorf("catch up with etcd: %w", err)
	}
	return nil
}

// watchMember makes this member a voter if it is a learner. It returns only what etcd
// definitely says: the problem that this host is no member. Otherwise it returns nil,
// because this host's etcd gives a better reason.
func (m Member) watchMember(ctx context.Context, client *clientv3.Client) error {
	return definite(m.promote(ctx, client, nil))
}

// toLeader makes the client talk only to etcd's leader. A follower of etcd 3.7 forwards
// a promotion without the caller, which auth refuses, and retries until the timeout.
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/cluster_util.go#L311-L322
func toLeader(ctx context.Context, client *clientv3.Client) error {
	list, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	var seen error
	for _, endpoint := range client.Endpoints() {
		status, err := client.Status(ctx, endpoint)
		if err != nil {
			seen = errors.Join(seen, err)
			continue
		}
		for _, member := range list.Members {
			if member.ID == status.Leader && len(member.ClientURLs) > 0 {
				if !slices.Equal(client.Endpoints(), member.ClientURLs[:1]) {
					client.SetEndpoints(member.ClientURLs[0])
				}
				return nil
			}
		}
	}
	return errors.Join(errors.New("etcd has no leader"), seen)
}
