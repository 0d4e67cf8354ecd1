package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// removedPrefix is the prefix of one key per removed worker.
const removedPrefix = "/kube-bootstrap/removed/"

// Removed is a worker that was removed from the cluster. Its kubelet's
// certificates are valid until they expire, so the API servers must refuse
// them.
type Removed struct {
	Host string `json:"-"`
	// Until is the time at which the last of these certificates expires.
	Until time.Time `json:"until"`
	// Accepted lists the SHA-256 of the certificates of a worker that joined
	// later with the same name.
	Accepted []string `json:"accepted,omitempty"`
}

// NoteRemoved records that a worker was removed.
func NoteRemoved(ctx context.Context, client *clientv3.Client, r Removed) error {
	if _, err := client.Put(ctx, removedPrefix+r.Host, encode(r)); err != nil {
		return fmt.Errorf("record that host %s was removed: %w", r.Host, err)
	}
	return nil
}

// DropRemoved makes the API servers accept all certificates of a host again.
func DropRemoved(ctx context.Context, client *clientv3.Client, host string) error {
	_, err := client.Delete(ctx, removedPrefix+host)
	return err
}

// Accept adds a certificate to the accepted ones of a host, unless the record
// has changed since r was read.
func (r Removed) Accept(ctx context.Context, client *clientv3.Client, certificate string) error {
	key := removedPrefix + r.Host
	now, err := client.Get(ctx, key)
	if err != nil || len(now.Kvs) == 0 || json.Unmarshal(now.Kvs[0].Value, &r) != nil || slices.Contains(r.Accepted, certificate) {
		return err
	}
	r.Accepted = append(r.Accepted, certificate)
	same := clientv3.Compare(clientv3.ModRevision(key), "=", now.Kvs[0].ModRevision)
	_, err = client.Txn(ctx).If(same).Then(clientv3.OpPut(key, encode(r))).Commit()
	return err
}

// ListRemoved returns the removed workers. It deletes records that have
// expired.
func ListRemoved(ctx context.Context, client *clientv3.Client, now time.Time) (all []Removed, err error) {
	found, err := client.Get(ctx, removedPrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", removedPrefix, err)
	}
	for _, kv := range found.Kvs {
		r := Removed{Host: strings.TrimPrefix(string(kv.Key), removedPrefix)}
		if err := json.Unmarshal(kv.Value, &r); err == nil && now.After(r.Until) {
			if err := DropRemoved(ctx, client, r.Host); err != nil {
				return nil, err
			}
			continue
		}
		all = append(all, r)
	}
	return all, nil
}

// FollowRemoved calls tell at its start and whenever a record changes, until
// ctx ends or the watch breaks.
func FollowRemoved(ctx context.Context, client *clientv3.Client, tell func()) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for answer := range client.Watch(ctx, removedPrefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify()) {
		if err := answer.Err(); err != nil {
			return fmt.Errorf("watch %s: %w", removedPrefix, err)
		}
		tell()
	}
	return ctx.Err()
}
