package snapshot

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// Keys are the keys in the database of an etcd that does not run.
type Keys struct{ store mvcc.KV }

// Key is a key of etcd with its value.
type Key struct{ Name, Value string }

// Below returns the keys with a prefix.
func (k Keys) Below(prefix string) (all []Key, err error) {
	found, err := k.store.Range(context.Background(), []byte(prefix), end(prefix), mvcc.RangeOptions{})
	if err != nil {
		return nil, err
	}
	for _, kv := range found.KVs {
		all = append(all, Key{string(kv.Key), string(kv.Value)})
	}
	return all, nil
}

func end(prefix string) []byte { return []byte(clientv3.GetPrefixRangeEnd(prefix)) }

// Delete deletes a key.
func (k Keys) Delete(name string) { k.store.DeleteRange([]byte(name), nil) }

// Put sets a key.
func (k Keys) Put(name, value string) { k.store.Put([]byte(name), []byte(value), lease.NoLease) }

// objects is the prefix of the objects of Kubernetes.
const objects = "/registry/"

// Count returns how many objects of each resource a snapshot contains. It opens the database in from, which must be
// of Memory: it removes the hash at its end.
func Count(from *os.File) (map[string]int, error) {
	size, err := from.Seek(-hashSize, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if err := from.Truncate(size); err != nil {
		return nil, err
	}
	counts := map[string]int{}
	err = open(pathOf(from), func(s mvcc.KV) error { return count(s, counts) })
	if err == nil && len(counts) == 0 {
		err = errors.New("it contains no object of Kubernetes")
	}
	return counts, err
}

const hashSize = 32 // bytes, of SHA-256

// count reads all objects, because a value that cannot be read is an error of etcd.
func count(s mvcc.KV, counts map[string]int) error {
	found, err := s.Range(context.Background(), []byte(objects), end(objects), mvcc.RangeOptions{})
	if err != nil {
		return err
	}
	for _, kv := range found.KVs {
		resource, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), objects), "/")
		counts[resource]++
	}
	return nil
}
