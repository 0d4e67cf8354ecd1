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

// removedPrefix holds a key for each worker that was taken out of the cluster.
const removedPrefix = "/kube-bootstrap/removed/"

// Removed is a worker that was taken out of the cluster. The certificates that
// its kubelet had are valid until they expire, and must not be accepted.
type Removed struct {
	Host string `json:"-"`
	// Until is when the last of these certificates has expired.
	Until time.Time `json:"until"`
	// Accepted are the certificates of a worker that joined later with the same
	// name, by their SHA-256.
	Accepted []string `json:"accepted,omitempty"`
}

// NoteRemoved records that a worker was taken out.
func NoteRemoved(ctx context.Context, client *clientv3.Client, r Removed) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := client.Put(ctx, removedPrefix+r.Host, string(data)); err != nil {
		return fmt.Errorf("note that host %s was removed: %w", r.Host, err)
	}
	return nil
}

// DropRemoved has every certificate of a host accepted again.
func DropRemoved(ctx context.Context, client *clientv3.Client, host string) error {
	_, err := client.Delete(ctx, removedPrefix+host)
	return err
}

// Accept adds a certificate to those that are accepted of a host, unless the
// host was removed again since r was read.
func (r Removed) Accept(ctx context.Context, client *clientv3.Client, certificate string) error {
	key := removedPrefix + r.Host
	now, err := client.Get(ctx, key)
	if err != nil || len(now.Kvs) == 0 || json.Unmarshal(now.Kvs[0].Value, &r) != nil || slices.Contains(r.Accepted, certificate) {
		return err
	}
	r.Accepted = append(r.Accepted, certificate)
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	same := clientv3.Compare(clientv3.ModRevision(key), "=", now.Kvs[0].ModRevision)
	_, err = client.Txn(ctx).If(same).Then(clientv3.OpPut(key, string(data))).Commit()
	return err
}

// ListRemoved returns the workers that were taken out, and drops the records of
// certificates that have expired.
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

// FollowRemoved calls tell when it begins and whenever a worker is taken out,
// until ctx ends or the watch breaks.
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
