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
func (s Server) Join() step.Step {
	check := func(ctx context.Context) (step.Diff, error) {
		cluster, err := joined(s.Files)
		if err != nil {
			return nil, err
		}
		diff, err := s.check(ctx)
		if err == nil && cluster == "" {
			diff = append(step.Diff{"add " + s.Name + " to the members of etcd"}, diff...)
		}
		return diff, err
	}
	return step.Step{Name: "join etcd", Check: check, Apply: s.join, Undo: s.undo}
}

func (s Server) join(ctx context.Context) error {
	client, err := s.peers(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := s.enter(ctx, client, s.undo); err != nil {
		return err
	}
	if err := s.run(ctx); err != nil {
		return err
	}
	promote := func(ctx context.Context) error { return s.promote(ctx, client, s.tail(ctx)) }
	if err := step.Watching(ctx, s.watchStart, promote); err != nil {
		return err
	}
	return s.ready(ctx)
}

// enter adds this member to the cluster, unless it is a member already. It first
// removes a member that has lost its data or never started, because it could not catch
// up under its old ID. clear removes an earlier etcd from this host.
func (m Member) enter(ctx context.Context, client *clientv3.Client, clear func(context.Context) error) error {
	own, err := m.await(ctx, client)
	if err != nil {
		return err
	}
	cluster, err := joined(m.Files)
	if err != nil {
		return err
	}
	switch {
	case own != nil && cluster != "" && HasData(m.Files):
		return nil // the member continues
	case own != nil && cluster != "" && own.Name == "":
		return nil // added and never started
	case own != nil && HasData(m.Files):
		return m.noteCluster(ctx, client) // only joinedFile was lost
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

// noteCluster writes joinedFile from the current members.
func (m Member) noteCluster(ctx context.Context, client *clientv3.Client) error {
	list, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	return m.Files.Write(joinedFile, []byte(m.initialCluster(list.Members)+"\n"), 0o600)
}

// add adds this host as a learner. It waits for another learner, because etcd
// allows one at a time. It does not simply retry the request: etcd drops a
// membership change that arrives while another one is in progress, which
// could be the other learner's promotion.
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
				return fmt.Errorf("%s %v is joining at the same time", other.Name, other.PeerURLs)
			}
		}
		if _, err = client.MemberAddAsLearner(ctx, []string{peerURL(m.IP)}); err != nil {
			return err
		}
		return errAdded
	}, nil)
	if err != nil {
		return fmt.Errorf("add this host to the members of etcd: %w", err)
	}
	return m.Files.Write(joinedFile, []byte(cluster+"\n"), 0o600)
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
		own, err := m.find(ctx, client)
		switch {
		case err != nil:
			return err
		case own == nil:
			return step.Final(errors.New("another host has removed this one from etcd; run the same command again"))
		case !own.IsLearner:
			return nil
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

// toLeader makes the client talk only to etcd's leader. A follower of etcd 3.7 forwards
// a promotion without the caller, which auth refuses, and retries until the timeout.
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
