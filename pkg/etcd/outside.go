package etcd

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Outside returns the problem that another member says that this host is none [etcd-removed]. After a recovery, lost
// members may still form the cluster of before. A recovery raises the revision, so the highest revision counts.
func (m Member) Outside(ctx context.Context) error {
	ctx, cancel := step.Limited(step.WithLimit(ctx, outsideLimit))
	defer cancel()
	answers := make([]answer, len(m.Peers)+1) // the last one is none
	var all sync.WaitGroup
	for i, ip := range m.Peers {
		all.Go(func() { answers[i] = m.isMember(ctx, ip) })
	}
	all.Wait()
	return slices.MaxFunc(answers, func(a, b answer) int { return cmp.Compare(a.revision, b.revision) }).outside
}

// outsideLimit is short, because the others may wait for this member, and a host that is off does not refuse a
// connection.
const outsideLimit = 2 * time.Second

// answer is what another member says about this host; the zero answer is none.
type answer struct {
	revision int64
	outside  error
}

// isMember asks the member at an address. Only a member with a quorum answers.
func (m Member) isMember(ctx context.Context, ip string) answer {
	if listens(ctx, ip) != nil {
		return answer{}
	}
	client, err := m.Client.Credentials.Connect(ctx, clientURL(ip))
	if err != nil {
		return answer{}
	}
	defer client.Close()
	now, err := client.Get(ctx, "health")
	if err != nil {
		return answer{}
	}
	_, err = m.own(ctx, client)
	return answer{now.Header.Revision, definite(err)}
}
