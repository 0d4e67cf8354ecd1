package etcd

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	lockPrefix = "/kube-bootstrap/locks/"
	// lockTTL is how many seconds the lock of a run that was killed remains. The
	// members that are up extend it while one starts again.
	lockTTL = 30
)

// Alone calls do once no other control plane does so under the same name.
func (m Member) Alone(ctx context.Context, name string, do func(context.Context) error) error {
	// Without cancel: the end of ctx must not keep the lock from being given back.
	client, err := m.Access().Client(context.WithoutCancel(ctx), m.endpoints()...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := step.Until(ctx, func(ctx context.Context) error { return read(ctx, client) }, nil); err != nil {
		return err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(lockTTL))
	if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	defer session.Close() // which gives the lock back
	waiting, cancel := step.Limited(ctx)
	defer cancel()
	if err := concurrency.NewMutex(session, lockPrefix+name).Lock(waiting); err != nil {
		return fmt.Errorf("wait until no other control plane holds the lock %s: %w", name, err)
	}
	return do(ctx)
}

// endpoints are this host's etcd and those of the others, which answer while it
// starts again.
func (m Member) endpoints() []string {
	all := []string{m.url(2379)}
	for _, ip := range m.Peers {
		all = append(all, "https://"+ip+":2379")
	}
	return all
}
