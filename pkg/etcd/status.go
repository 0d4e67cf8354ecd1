package etcd

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// MemberStatus is a member of etcd.
type MemberStatus struct {
	Name    string `json:"name"`
	IP      string `json:"ip"`
	Learner bool   `json:"learner"`
	Leader  bool   `json:"leader"`
	// Up means that the member answers, Healthy that it also has a leader.
	Up      bool `json:"up"`
	Healthy bool `json:"healthy"`
	// Revision is the revision of the last change that the member has applied.
	Revision int64  `json:"revision"`
	Error    string `json:"error,omitempty"`
}

// Status asks every member for its state. It reads the member list from this
// host's own member, which works without a quorum.
func (e Endpoint) Status(ctx context.Context) ([]MemberStatus, error) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	if err := listens(ctx, e.IP); err != nil {
		return nil, err
	}
	client, err := e.Client(ctx)
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
		all[i] = MemberStatus{Name: member.Name, Learner: member.IsLearner}
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
	err := listens(ctx, s.IP)
	var answer *clientv3.StatusResponse
	if err == nil {
		answer, err = client.Status(ctx, clientURL(s.IP))
	}
	if err != nil {
		s.Error = err.Error()
		return
	}
	s.Up, s.Healthy, s.Error = true, len(answer.Errors) == 0, strings.Join(answer.Errors, ", ")
	s.Leader, s.Revision = answer.Leader == id, answer.Header.Revision
}

// lostQuorum returns the problem of Quorum, and nil if the members cannot be
// listed.
func (e Endpoint) lostQuorum(ctx context.Context) error {
	all, _ := e.Status(ctx)
	return Quorum(all)
}

// Quorum returns the problem that too few members are up, with the hosts to
// start [etcd-quorum]. It returns nil if etcd has a quorum or if all is empty.
func Quorum(all []MemberStatus) error {
	var down []string
	voters := 0
	for _, s := range all {
		if s.Learner {
			continue
		}
		voters++
		if !s.Up {
			down = append(down, s.Name+" ("+net.JoinHostPort(s.IP, "2379")+")")
		}
	}
	need, up := voters/2+1, voters-len(down)
	if voters == 0 || up >= need {
		return nil
	}
	remedy := "start or repair their hosts"
	if need-up < len(down) {
		remedy = fmt.Sprintf("start or repair %d of their hosts", need-up)
	}
	return &step.Problem{
		Name:   "etcd-quorum",
		Text:   fmt.Sprintf("etcd has no quorum: %d of %d members answer and %d are required; down: %s", up, voters, need, strings.Join(down, ", ")),
		Remedy: remedy,
	}
}
