package etcd

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// page is how many keys KeysWithout reads in one request: values can be a
// megabyte each.
const page = 50

// KeysWithout returns the keys below a prefix, without it, whose values do not
// begin with the given text.
func KeysWithout(ctx context.Context, client *clientv3.Client, prefix, begins string) (keys []string, err error) {
	for from, end := prefix, clientv3.GetPrefixRangeEnd(prefix); ; {
		found, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page))
		if err != nil {
			return nil, fmt.Errorf("read the keys of etcd below %s: %w", prefix, err)
		}
		for _, kv := range found.Kvs {
			if !bytes.HasPrefix(kv.Value, []byte(begins)) {
				keys = append(keys, strings.TrimPrefix(string(kv.Key), prefix))
			}
		}
		if !found.More {
			return keys, nil
		}
		from = string(found.Kvs[len(found.Kvs)-1].Key) + "\x00"
	}
}
