package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Leave removes this host from etcd, if it is a member, calls release with a client of the
// other members, and removes this host from the list of control planes. It refuses if etcd
// would lose its quorum. The list is last: the others then close etcd's port to this host.
func (m Member) Leave(ctx context.Context, release func(context.Context, *clientv3.Client) error) error {
	if m.Data.Files.Exists(LeftFile) {
		return nil // an earlier turndown has left the cluster
	}
	client, err := m.peers(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // and has removed the certificates
	}
	if err != nil {
		return err
	}
	defer client.Close()
	all, _ := m.Client.Status(ctx)
	if lost := Quorum(all); lost != nil {
		return cannotLeave(lost)
	}
	_ = m.handOver(ctx, all) // a leader can be removed too
	err = patiently(ctx, func(ctx context.Context) error { return m.depart(ctx, client, release) })
	switch {
	case err == nil:
		return m.Data.Files.Write(LeftFile, nil, 0o600)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return cannotLeave(cmp.Or(m.Client.lostQuorum(ctx), err))
}

func (m Member) depart(
	ctx context.Context, client *clientv3.Client, release func(context.Context, *clientv3.Client) error,
) error {
	if err := removeAt(ctx, client, m.Client.IP); err != nil {
		return err
	}
	if err := release(ctx, client); err != nil {
		return err
	}
	return unlist(ctx, client, m.Name)
}

// handOver makes another voter the leader if the member of this host is the leader. When
// etcd removes its leader, it answers no request for about seven seconds, and some of them
// are lost (https://github.com/k3s-io/k3s/issues/12908).
func (m Member) handOver(ctx context.Context, all []MemberStatus) error {
	if !slices.ContainsFunc(all, func(s MemberStatus) bool { return s.Leader && s.IP == m.Client.IP }) {
		return nil
	}
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	return m.Client.Do(ctx, func(client *clientv3.Client) (err error) {
		for _, s := range all {
			if s.Leader || s.Learner || !s.Healthy {
				continue
			}
			if _, err = client.MoveLeader(ctx, s.id); err == nil {
				return nil
			}
		}
		return err
	})
}

// patiently retries a removal. etcd counts a member that came back as down for some
// seconds, so its refusal is final after the time of a check. Otherwise the wait is
// longer, because the members elect a leader.
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/server.go#L1629-L1637
func patiently(ctx context.Context, remove func(context.Context) error) error {
	limit := step.CheckLimit(ctx)
	begun := time.Now()
	return step.Until(step.WithLimit(ctx, 3*limit), func(ctx context.Context) error {
		err := remove(ctx)
		if isTooFew(err) && time.Since(begun) > limit {
			return step.Final(err)
		}
		return err
	}, nil)
}

// removeAt removes the members at an address from etcd.
func removeAt(ctx context.Context, client *clientv3.Client, ip string) error {
	list, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, member := range list.Members {
		if !slices.Contains(member.PeerURLs, peerURL(ip)) {
			continue
		}
		if err := remove(ctx, client, member.ID); err != nil {
			return err
		}
	}
	return nil
}

func remove(ctx context.Context, client *clientv3.Client, id uint64) error {
	_, err := client.MemberRemove(ctx, id)
	return unless(err, rpctypes.ErrMemberNotFound)
}

func cannotLeave(err error) error {
	if lost := step.Problems(err); len(lost) > 0 {
		return &step.Problem{Name: lost[0].Name, Text: "a host cannot be removed from etcd now: " + lost[0].Text,
			Remedy: lost[0].Remedy + "; with --force this host leaves without notifying the others"}
	}
	if isTooFew(err) {
		return &step.Problem{Name: "etcd-quorum",
			Text: "without it, etcd would have too few running members for a quorum",
			Remedy: "start the other members first (`kube-bootstrap status` lists them); --force continues and stops " +
				"the cluster"}
	}
	return &step.Problem{
		Name: "etcd-member", Text: fmt.Sprintf("the other members of etcd do not answer, so a host cannot be "+
			"removed: %v", err),
		Remedy: "start them first; with --force this host leaves without notifying them, and etcd counts it as a " +
			"member that is down",
	}
}

// isTooFew reports whether etcd refuses a removal because too few members would run.
func isTooFew(err error) bool {
	return errors.Is(err, rpctypes.ErrUnhealthy) || errors.Is(err, rpctypes.ErrMemberNotEnoughStarted)
}

// cannotForget is cannotLeave for a command on another host, which has no --force.
func cannotForget(name string, err error) error {
	if isTooFew(err) {
		return &step.Problem{Name: "etcd-quorum",
			Text: "without " + name + ", etcd would have too few running members for a quorum",
			Remedy: "start the other members first (`kube-bootstrap status` lists them), " +
				"and run the same command again"}
	}
	return &step.Problem{Name: "etcd-member", Text: fmt.Sprintf("etcd does not remove %s: %v", name, err),
		Remedy: "look at `kube-bootstrap status`, and run the same command again"}
}

// Forget removes a dead host from the list of control planes and from etcd. It returns
// the host's address, or "" if the host is in neither.
func (m Member) Forget(ctx context.Context, name string) (ip string, err error) {
	all, err := m.Client.Status(ctx)
	if err != nil {
		return "", err
	}
	if lost := Quorum(all); lost != nil {
		return "", lost
	}
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	err = m.Client.Do(ctx, func(client *clientv3.Client) error {
		listed, err := EverListed(ctx, client)
		if err != nil {
			return err
		}
		if ip, err = forgettable(m.Name, name, all, listed); err != nil || ip == "" {
			return err
		}
		if err := removeAt(ctx, client, ip); err != nil {
			return cannotForget(name, err)
		}
		if err := unlist(ctx, client, name); err != nil {
			return cannotForget(name, err)
		}
		return nil
	})
	return ip, err
}

// forgettable returns the address of a host from the members or the list. own
// is the name of this host. A member that has not started yet has no name.
func forgettable(own, name string, all []MemberStatus, listed []ControlPlaneEntry) (ip string, err error) {
	if name == own {
		return "", &step.Problem{
			Name: "control-plane-alive", Text: name + " is this host",
			Remedy: "run `kube-bootstrap turndown` to remove it from the cluster",
		}
	}
	for _, e := range listed {
		if e.Name == name {
			ip = e.IP
		}
	}
	for _, s := range all {
		if s.Name != name && s.IP != ip {
			continue
		}
		if s.Healthy {
			return "", &step.Problem{
				Name: "control-plane-alive", Text: name + " at " + s.IP + " is alive",
				Remedy: "run `kube-bootstrap turndown` on it",
			}
		}
		return s.IP, nil
	}
	return ip, nil
}
