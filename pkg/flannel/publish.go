package flannel

import (
	"context"
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	prefix     = "/coreos.com/network"
	configKey  = prefix + "/config"
	subnetsKey = prefix + "/subnets/"
)

// Store is the etcd that stores the network configuration.
type Store interface {
	Client(context.Context) (*clientv3.Client, error)
	// Look calls ask, or returns new if etcd has never run on this host.
	Look(ctx context.Context, new step.Diff, ask func(context.Context, *clientv3.Client) (step.Diff, error)) (step.Diff, error)
}

// Publish is the step that writes the network configuration to etcd. It
// replaces another configuration only if no other host has a lease.
func (n Network) Publish(etcd Store) step.Step {
	return step.Step{
		Name:  "write the flannel network config",
		Check: func(ctx context.Context) (step.Diff, error) { return n.check(ctx, etcd) },
		Apply: func(ctx context.Context) error { return n.apply(ctx, etcd) },
	}
}

func (n Network) check(ctx context.Context, etcd Store) (step.Diff, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	all := step.Diff{"write " + configKey + ": " + n.json()}
	return etcd.Look(ctx, all, func(ctx context.Context, client *clientv3.Client) (step.Diff, error) {
		now, err := published(ctx, client)
		switch {
		case err != nil:
			return nil, err
		case now == "":
			return all, nil
		case n.same(now):
			return nil, nil
		}
		return step.Diff{"replace " + configKey + ": " + now + " by " + n.json()}, n.free(ctx, client, now)
	})
}

// apply gives each request the limit of the step, because etcd may be slow.
func (n Network) apply(ctx context.Context, etcd Store) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	client, err := etcd.Client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	now, err := published(ctx, client)
	if err != nil {
		return err
	}
	if n.same(now) {
		return nil
	}
	if err := n.free(ctx, client, now); err != nil {
		return err
	}
	_, err = client.Put(ctx, configKey, n.json())
	return err
}

func published(ctx context.Context, client *clientv3.Client) (string, error) {
	found, err := client.Get(ctx, configKey)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", configKey, err)
	}
	if len(found.Kvs) == 0 {
		return "", nil
	}
	return string(found.Kvs[0].Value), nil
}

func (n Network) same(text string) bool {
	var now networkConfig
	return json.Unmarshal([]byte(text), &now) == nil && now == n.config()
}

// free returns a problem if another host has a lease of the current
// configuration, because its containers would keep addresses that the cluster
// no longer routes.
func (n Network) free(ctx context.Context, client *clientv3.Client, now string) error {
	if now == "" {
		return nil
	}
	leases, err := client.Get(ctx, subnetsKey, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("read %s: %w", subnetsKey, err)
	}
	for _, kv := range leases.Kvs {
		by := holder(kv.Value)
		if n.Own.IsValid() && by == n.Own.String() {
			continue
		}
		return &step.Problem{
			Name:   "flannel-network-in-use",
			Text:   fmt.Sprintf("host %s has a subnet under another flannel network, %s, and this one is %s", by, now, n.json()),
			Remedy: "use the current network, or run `kube-bootstrap turndown` on the other hosts first",
		}
	}
	return nil
}

// holder returns the public IP of a lease, or "" if the value is not a lease.
func holder(lease []byte) string {
	var l struct{ PublicIP string }
	if json.Unmarshal(lease, &l) != nil {
		return ""
	}
	return l.PublicIP
}
