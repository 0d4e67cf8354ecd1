package flannel

import (
	"context"
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Forget gives back the subnet of a host that died for good: its own flanneld
// cannot do so any more.
func Forget(ctx context.Context, client *clientv3.Client, publicIP string) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	leases, err := client.Get(ctx, subnetsKey, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("read %s: %w", subnetsKey, err)
	}
	for _, kv := range leases.Kvs {
		if holder(kv.Value) != publicIP {
			continue
		}
		if _, err := client.Delete(ctx, string(kv.Key)); err != nil {
			return fmt.Errorf("delete %s: %w", kv.Key, err)
		}
	}
	return nil
}

// holder is the address of the host that has a lease; none of what is no lease.
func holder(lease []byte) string {
	var l struct{ PublicIP string }
	if json.Unmarshal(lease, &l) != nil {
		return ""
	}
	return l.PublicIP
}
