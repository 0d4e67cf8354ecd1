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

// joinedFile contains the value of --initial-cluster with which this member
// joined. It exists once the member has been added.
const joinedFile = host.StateDir + "/etcd-cluster"

// Join is the step that adds this host's etcd to an existing cluster: first
// as a learner, which has no vote and so cannot harm the cluster, then as a
// voter. On a host that has joined, it does the same as Start.
//
//	added as learner ──▶ joinedFile written ──▶ etcd runs ──▶ promoted ──▶ answers
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

// joined returns the content of joinedFile, or "".
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

// clusterForm is the format of etcd's --initial-cluster.
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

// peers returns a client of the other members.
func (m Member) peers(ctx context.Context) (*clientv3.Client, error) {
	var endpoints []string
	for _, ip := range m.Peers {
		if ip != m.IP {
			endpoints = append(endpoints, "https://"+net.JoinHostPort(ip, "2379"))
		}
	}
	if len(endpoints) == 0 {
		return nil, errors.New("no other control plane is known; set one with --master-ip")
	}
	return m.Access().Client(ctx, endpoints...)
}

// enter adds this member to the cluster, unless it is a member already. It
// first removes a member that has lost its data or never started, because it
// could not catch up under its old ID.
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
		return nil // the member continues
	case own != nil && cluster != "" && own.Name == "":
		return nil // added and never started
	case own != nil && m.HasData():
		return m.noteCluster(ctx, client) // only joinedFile was lost
	case own != nil:
		which := func(member *clientv3.Member) bool { return member.ID == own.ID }
		if err := retry(ctx, func(ctx context.Context) error { return remove(ctx, client, which) }, nil); err != nil {
			return fmt.Errorf("remove the earlier member %s: %w", m.Name, err)
		}
	}
	if err := errors.Join(m.service().Remove(ctx), m.removeData()); err != nil {
		return err
	}
	return m.add(ctx, client)
}

// HasData reports whether a member has run on this host.
func (m Member) HasData() bool { return m.Files.Exists(DataDir + "/member") }

// noteCluster writes joinedFile from the current members.
func (m Member) noteCluster(ctx context.Context, client *clientv3.Client) error {
	list, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	return m.Files.Write(joinedFile, []byte(m.initialCluster(list.Members)+"\n"), 0o600)
}

// find returns the member of this host, or nil. It returns a problem if a
// voter at another address has the same name.
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
				Text:   fmt.Sprintf("a control plane named %s exists at %s", m.Name, strings.Join(member.PeerURLs, ", ")),
				Remedy: "give this host another --host-name, or run `kube-bootstrap turndown` on the other one first"}
		}
		if member.Name == m.Name {
			return member, nil // a learner with an earlier address of this host
		}
	}
	return nil, nil
}

// await is find with retries, because etcd may have no leader for a moment.
func (m Member) await(ctx context.Context, client *clientv3.Client) (own *etcdserverpb.Member, err error) {
	err = retry(ctx, func(ctx context.Context) (err error) {
		own, err = m.find(ctx, client)
		return err
	}, nil)
	return own, err
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

// errAdded makes retry read the members again, now with this host.
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

// lasting reports whether a retry cannot solve err.
func lasting(err error) bool {
	return errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrMemberBadURLs) || errors.Is(err, errGone)
}

// initialCluster returns the value of --initial-cluster, which etcd compares
// with the members. It is empty if this host is not a member.
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

// errGone is returned if another host removed this one while it joined.
var errGone = errors.New("another host has removed this one from etcd; run the same command again")

// promote promotes the learner as soon as the leader accepts that it has
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
