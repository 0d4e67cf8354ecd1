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
func (d Database) KeepRoom(ctx context.Context, failed func(error)) error {
	client, err := d.Member.Client.Connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	kept := history{client: client, url: d.Member.Client.URL(), quota: d.Quota}
	for ; ctx.Err() == nil; _ = step.Pause(ctx, roomEvery) {
		if err := kept.drop(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
	return nil
}

// history is the history of keys in the etcd of this host. Sizes are in bytes.
type history struct {
	client *clientv3.Client
	url    string // of this host's etcd
	quota  int64
	left   int64 // the size in use after the history was removed
}

// drop removes the history if the database has grown. Only the leader does so, for all members.
func (h *history) drop(ctx context.Context) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	size, leads := h.inUse(ctx)
	if !leads {
		return nil
	}
	h.left = min(h.left, size)
	if size < h.quota/roomPart || size-h.left < h.quota/growthPart {
		return nil
	}
	if err := compact(ctx, h.client); err != nil {
		return fmt.Errorf("keep etcd below its quota: %w", err)
	}
	if size, leads = h.inUse(ctx); leads {
		h.left = size
	}
	return nil
}

// inUse returns the size of the database, and whether the etcd of this host leads. Other parts
// of the agent report an etcd that does not answer.
func (h *history) inUse(ctx context.Context) (size int64, leads bool) {
	status, err := h.client.Status(ctx, h.url)
	if err != nil {
		return 0, false
	}
	return status.DbSizeInUse, status.Leader == status.Header.MemberId
}
