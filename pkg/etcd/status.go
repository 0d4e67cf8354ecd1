package etcd

import (
	"context"
	"net/url"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// MemberStatus is a member of etcd.
type MemberStatus struct {
	Name    string `json:"name"`
	IP      string `json:"ip"`
	Learner bool   `json:"learner"`
	Leader  bool   `json:"leader"`
	Healthy bool   `json:"healthy"`
	// Revision is of the last change that the member has seen.
	Revision int64  `json:"revision"`
	Error    string `json:"error,omitempty"`
}

// Status asks every member how it is, by way of this host's own.
func (m Member) Status(ctx context.Context) ([]MemberStatus, error) {
	if err := m.answers(ctx); err != nil {
		return nil, err
	}
	client, err := m.Client(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	list, err := client.MemberList(ctx)
	if err != nil {
		return nil, err
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
		wait.Go(func() { m.ask(ctx, client, member.ID, &all[i]) })
	}
	wait.Wait()
	return all, nil
}

func (m Member) ask(ctx context.Context, client *clientv3.Client, id uint64, s *MemberStatus) {
	other := m
	other.IP = s.IP
	answer, err := client.Status(ctx, other.url(2379))
	if err != nil {
		s.Error = err.Error()
		return
	}
	s.Healthy, s.Leader, s.Revision = len(answer.Errors) == 0, answer.Leader == id, answer.Header.Revision
}
