package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	roomEvery = 5 * time.Second
	// The history is removed when the database uses a quarter of the quota, and again when it
	// has grown by another sixteenth: more of it may be needed than a quarter.
	roomPart, growthPart = 4, 16
)

// KeepRoom keeps the history of keys from filling the database, until ctx ends. The API server
// removes history that is older than five minutes. Before that, a client which rewrites one large
// object again and again, as a kubelet could rewrite its node, would reach the quota. etcd then
// refuses all writes of the cluster.
func (s Server) KeepRoom(ctx context.Context, failed func(error)) error {
	client, err := s.Client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	for left := int64(0); ctx.Err() == nil; _ = step.Pause(ctx, roomEvery) {
		if left, err = s.dropHistory(ctx, client, left); err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
	return nil
}

// dropHistory removes the history if the database has grown; left is its size in use after the
// last time. Only the leader does so, for all members.
func (s Server) dropHistory(ctx context.Context, client *clientv3.Client, left int64) (int64, error) {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	size, leads := s.inUse(ctx, client)
	if !leads {
		return left, nil
	}
	left = min(left, size)
	if size < s.quota()/roomPart || size-left < s.quota()/growthPart {
		return left, nil
	}
	if err := compact(ctx, client); err != nil {
		return left, fmt.Errorf("keep etcd below its quota: %w", err)
	}
	if size, leads = s.inUse(ctx, client); leads {
		left = size
	}
	return left, nil
}

// inUse returns the size of the database, and whether the etcd of this host leads. Other parts
// of the agent report an etcd that does not answer.
func (s Server) inUse(ctx context.Context, client *clientv3.Client) (size int64, leads bool) {
	status, err := client.Status(ctx, s.URL())
	if err != nil {
		return 0, false
	}
	return status.DbSizeInUse, status.Leader == status.Header.MemberId
}
