package flannel

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	prefix     = "/coreos.com/network"
	configKey  = prefix + "/config"
	subnetsKey = prefix + "/subnets/"

	lookLimit = 2 * time.Second
)

// Publish writes the network's description into etcd. Another one is replaced
// only while no other host has a lease under it.
func (n Network) Publish(client func(context.Context) (*clientv3.Client, error)) step.Step {
	return step.Step{
		Name:  "write the flannel network config",
		Check: func(ctx context.Context) (step.Diff, error) { return n.check(ctx, client) },
		Apply: func(ctx context.Context) error { return n.apply(ctx, client) },
	}
}

// check answers with the whole change as long as there is no etcd to ask.
func (n Network) check(ctx context.Context, connect func(context.Context) (*clientv3.Client, error)) (step.Diff, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	all := step.Diff{"write " + configKey + ": " + n.json()}
	client, err := connect(ctx)
	if err != nil {
		return all, nil
	}
	defer client.Close()
	if !listening(ctx, client.Endpoints()) {
		return all, nil
	}
	now, err := published(ctx, client)
	if err != nil || now == "" {
		return all, nil
	}
	if n.same(now) {
		return nil, nil
	}
	if err := n.free(ctx, client, now); err != nil {
		return nil, err
	}
	return step.Diff{"replace " + configKey + ": " + now + " by " + n.json()}, nil
}

func (n Network) apply(ctx context.Context, connect func(context.Context) (*clientv3.Client, error)) error {
	client, err := connect(ctx)
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

// listening reports whether there is anything to ask: the client itself would
// try a closed port again and again.
func listening(ctx context.Context, endpoints []string) bool {
	for _, endpoint := range endpoints {
		at, err := url.Parse(endpoint)
		if err != nil {
			continue
		}
		conn, err := (&net.Dialer{Timeout: lookLimit}).DialContext(ctx, "tcp", at.Host)
		if err == nil {
			conn.Close()
			return true
		}
	}
	return false
}

func published(ctx context.Context, client *clientv3.Client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
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

// free refuses while another host lives by the config that is there: its
// containers would keep addresses that the cluster no longer routes.
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
			Remedy: "use the network that is there, or turn the other hosts down first",
		}
	}
	return nil
}
