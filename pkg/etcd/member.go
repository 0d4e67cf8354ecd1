package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Member is this host among the members of etcd.
type Member struct {
	Client    Client
	Data      Data
	Name      string   // of the member: the node's name
	Addresses []string // further addresses of the host

	// Peers are the known addresses of the other control planes. None: a new cluster.
	Peers []string
}

// peers returns a client of the other members.
func (m Member) peers(ctx context.Context) (*clientv3.Client, error) {
	if len(m.Peers) == 0 {
		return nil, errors.New("no other control plane is known; set one with --master-ip")
	}
	return m.Client.Credentials.Connect(ctx, m.others()...)
}

func (m Member) others() (endpoints []string) {
	for _, ip := range m.Peers {
		endpoints = append(endpoints, clientURL(ip))
	}
	return endpoints
}

// find returns the member of this host, or nil. It returns a problem if a
// voter at another address has the same name.
func (m Member) find(ctx context.Context, client *clientv3.Client) (*etcdserverpb.Member, error) {
	list, err := client.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask %s for the members of etcd: %w", strings.Join(client.Endpoints(), ", "), err)
	}
	for _, member := range list.Members {
		switch {
		case slices.Contains(member.PeerURLs, peerURL(m.Client.IP)):
			return member, nil
		case member.Name == m.Name && member.IsLearner:
			return member, nil // a learner with an earlier address of this host
		case member.Name == m.Name:
			return nil, &step.Problem{Name: "host-name",
				Text: fmt.Sprintf("a control plane named %s exists at %s",
					m.Name, strings.Join(member.PeerURLs, ", ")),
				Remedy: "give this host another --host-name, or run `kube-bootstrap turndown` on the other one first"}
		}
	}
	return nil, nil
}

// own returns the member of this host, or the problem that this host is no member.
func (m Member) own(ctx context.Context, client *clientv3.Client) (*etcdserverpb.Member, error) {
	own, err := m.find(ctx, client)
	if err == nil && own == nil {
		err = removedProblem()
	}
	return own, err
}

// dataRemedy depends on whether other members have the data.
func (m Member) dataRemedy() string {
	if len(m.Peers) > 0 {
		return "run `kube-bootstrap turndown --force` on this host and join it again: the other members have the data"
	}
	return "run `kube-bootstrap master --recover`, which continues with what can be read of them; or " + restoreRemedy
}

// definite returns the first problem of err: what etcd definitely says. Any other error
// means that the members did not answer.
func definite(err error) error {
	if problems := step.Problems(err); len(problems) > 0 {
		return problems[0]
	}
	return nil
}

// await is find with retries, because etcd may have no leader for a moment.
func (m Member) await(ctx context.Context, client *clientv3.Client) (own *etcdserverpb.Member, err error) {
	err = retry(ctx, func(ctx context.Context) (err error) {
		own, err = m.find(ctx, client)
		return err
	}, nil)
	return own, err
}

// initialCluster returns the value of --initial-cluster, which etcd compares
// with the members. It is empty if this host is not a member.
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/api/membership/cluster.go#L751-L775
func (m Member) initialCluster(members []*etcdserverpb.Member) string {
	var all []string
	found := false
	for _, member := range members {
		name := member.Name
		if slices.Contains(member.PeerURLs, peerURL(m.Client.IP)) {
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

// alone returns the --initial-cluster of a cluster whose only member is this one.
func (m Member) alone() string { return m.Name + "=" + m.PeerURL() }

// PeerURL returns the URL of this member for other members.
func (m Member) PeerURL() string { return peerURL(m.Client.IP) }

const (
	restoreRemedy = "run `kube-bootstrap turndown`, and then `kube-bootstrap restore` with a backup of the cluster"
	lockPrefix    = "/kube-bootstrap/locks/"
	lockTTL       = 30 // seconds until the lock of a killed run expires; a change of the leader extends it
)

// Alone calls do while no other control plane does so under the same name.
func (m Member) Alone(ctx context.Context, name string, do func(context.Context) error) error {
	// The end of ctx must not prevent the release of the lock. The other members
	// answer while the etcd of this host restarts.
	client, err := m.Client.Credentials.Connect(context.WithoutCancel(ctx),
		append([]string{m.Client.URL()}, m.others()...)...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := step.Until(ctx, func(ctx context.Context) error { return read(ctx, client) }, nil); err != nil {
		return err
	}
	waiting, cancel := step.Limited(ctx)
	defer cancel()
	lease, err := client.Grant(waiting, lockTTL) // NewSession would ask for it without a limit
	if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(lockTTL), concurrency.WithLease(lease.ID))
	if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	defer session.Close() // releases the lock
	if err := concurrency.NewMutex(session, lockPrefix+name).Lock(waiting); err != nil {
		return fmt.Errorf("wait until no other control plane holds the lock %s: %w", name, err)
	}
	return do(ctx)
}

// MemberStatus is a member of etcd.
type MemberStatus struct {
	id      uint64
	Name    string `json:"name"`
	IP      string `json:"ip"`
	Learner bool   `json:"learner"`
	Leader  bool   `json:"leader"`
	// Up means that the member answers, Healthy that it also has a leader.
	Up      bool `json:"up"`
	Healthy bool `json:"healthy"`
	Led     bool `json:"-"` // it has a leader; Healthy also means that there is no alarm
	// Silent means that the member accepts connections and has not answered in time, so
	// that it is unknown whether it is up.
	Silent bool `json:"silent,omitempty"`
	// Revision is the revision of the last change that the member has applied.
	Revision int64  `json:"revision"`
	Version  string `json:"version,omitempty"` // of its etcd: "3.6.16"
	Error    string `json:"error,omitempty"`
}

// Status asks every member for its state. It reads the member list from this
// host's own member, which works without a quorum.
func (c Client) Status(ctx context.Context) ([]MemberStatus, error) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	if err := listens(ctx, c.IP); err != nil {
		return nil, err
	}
	client, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	list, err := client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return nil, fmt.Errorf("list the members of etcd: %w", err)
	}
	all := make([]MemberStatus, len(list.Members))
	var wait sync.WaitGroup
	for i, member := range list.Members {
		all[i] = MemberStatus{id: member.ID, Name: member.Name, Learner: member.IsLearner}
		for _, peer := range member.PeerURLs {
			if at, err := url.Parse(peer); err == nil {
				all[i].IP = at.Hostname()
			}
		}
		wait.Go(func() { ask(ctx, client, member.ID, &all[i]) })
	}
	wait.Wait()
	return all, nil
}

func ask(ctx context.Context, client *clientv3.Client, id uint64, s *MemberStatus) {
	ctx, cancel := step.Half(ctx) // a host that is off does not refuse the connection
	defer cancel()
	begun := time.Now()
	err := listens(ctx, s.IP)
	var answer *clientv3.StatusResponse
	if err == nil {
		answer, err = client.Status(ctx, clientURL(s.IP))
		s.Silent = err != nil && ctx.Err() != nil
	}
	switch {
	case s.Silent:
		s.Error = fmt.Sprintf("no answer within %s", time.Since(begun).Round(time.Second/10))
		return
	case err != nil:
		s.Error = err.Error()
		return
	}
	s.Up, s.Healthy, s.Error = true, len(answer.Errors) == 0, strings.Join(answer.Errors, ", ")
	s.Led, s.Leader = answer.Leader != 0, answer.Leader == id
	s.Revision, s.Version = answer.Header.Revision, answer.Version
}

// Status returns the state of every member, as Client.Status. Without a quorum, an etcd that has just started does
// not answer: the state is then that of the known members.
func (m Member) Status(ctx context.Context) ([]MemberStatus, error) {
	all, err := m.Client.Status(ctx)
	if err == nil || len(m.Peers) == 0 || !m.Data.Exist() {
		return all, err
	}
	all = append(m.peerStatus(ctx), MemberStatus{Name: m.Name, IP: m.Client.IP, Error: err.Error()})
	if slices.ContainsFunc(all, func(s MemberStatus) bool { return s.Led }) {
		return nil, err // another member has a quorum
	}
	return all, nil
}

func (m Member) peerStatus(ctx context.Context) []MemberStatus {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	all := make([]MemberStatus, len(m.Peers))
	client, err := m.peers(ctx)
	if err != nil {
		return nil
	}
	defer client.Close()
	var wait sync.WaitGroup
	for i, ip := range m.Peers {
		all[i] = MemberStatus{Name: ip, IP: ip}
		wait.Go(func() { ask(ctx, client, 0, &all[i]) })
	}
	wait.Wait()
	return all
}

// lostQuorum returns the problem of Quorum, or nil if the members cannot be listed.
func (c Client) lostQuorum(ctx context.Context) error {
	all, _ := c.Status(ctx)
	return Quorum(all)
}

// Quorum returns the problem that too few members are up, with the hosts to
// start [etcd-quorum]. It returns nil if etcd has a quorum, if that depends on members that
// are silent, or if all is empty.
func Quorum(all []MemberStatus) error {
	var down []string
	voters, silent := 0, 0
	for _, s := range all {
		if s.Learner {
			continue
		}
		voters++
		switch {
		case s.Silent:
			silent++
		case !s.Up:
			down = append(down, s.Name+" ("+ClientAddress(s.IP)+")")
		}
	}
	need, up := voters/2+1, voters-len(down)-silent
	if voters == 0 || up+silent >= need {
		return nil
	}
	remedy := "start or repair their hosts"
	if need-up < len(down) {
		remedy = fmt.Sprintf("start or repair %d of their hosts", need-up)
	}
	remedy += "; only if they are lost for good, run `kube-bootstrap master --recover` on a surviving control plane: " +
		"if they still run and are unreachable from here, what they have stored since is lost"
	return &step.Problem{
		Name: "etcd-quorum",
		Text: fmt.Sprintf("etcd has no quorum: %d of %d members answer and %d are required; down: %s",
			up, voters, need, strings.Join(down, ", ")),
		Remedy: remedy,
	}
}
