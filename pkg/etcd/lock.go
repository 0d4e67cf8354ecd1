package etcd

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	lockPrefix = "/kube-bootstrap/locks/"
	// lockTTL is the number of seconds after which the lock of a killed run
	// expires. A change of the leader extends it.
	lockTTL = 30
)

// Alone calls do while no other control plane does so under the same name.
func (m Member) Alone(ctx context.Context, name string, do func(context.Context) error) error {
	// The end of ctx must not prevent the release of the lock. The other members
	// answer while the etcd of this host restarts.
	client, err := m.Access.Client(context.WithoutCancel(ctx), append([]string{m.URL()}, m.others()...)...)
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
	defer session.Close() // releases the lock
	waiting, cancel := step.Limited(ctx)
	defer cancel()
	if err := concurrency.NewMutex(session, lockPrefix+name).Lock(waiting); err != nil {
		return fmt.Errorf("wait until no other control plane holds the lock %s: %w", name, err)
	}
	return do(ctx)
}
