package etcd

import (
	"context"
	"encoding/json"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// listPrefix is the prefix of the list of control planes: one key per member
// name. Every host may read it with flannel's certificate.
const listPrefix = "/kube-bootstrap/control-planes/"

// Entry is a control plane in the list.
type Entry struct {
	Name string `json:"name"`
	IP   string `json:"ip"`
	// Addresses are further addresses of the host, from which it may connect.
	Addresses []string `json:"addresses,omitempty"`
	// Joining is set while the control plane is joining and does not answer yet.
	Joining bool `json:"joining,omitempty"`
}

func (e Entry) key() string { return listPrefix + e.Name }

// encode returns an Entry or a Removed as JSON.
func encode(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // impossible: strings, a bool, and a time that was read from JSON or is near
	}
	return string(data)
}

// Announce is the step that announces this joining control plane to the
// others, so that a single control plane enables leader election.
func (m Member) Announce() step.Step {
	return step.Step{
		Name:  "announce this control plane",
		Waits: true,
		Check: func(context.Context) (step.Diff, error) {
			if m.Files.Exists(joinedFile) {
				return nil, nil
			}
			return step.Diff{"announce " + m.Name + " as a control plane at " + m.IP}, nil
		},
		Apply: m.announce,
	}
}

// announce does not change an entry of an earlier run.
func (m Member) announce(ctx context.Context) error {
	client, err := m.peers(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := m.await(ctx, client); err != nil {
		return err // also reports a host with the same name
	}
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	e := m.entry()
	e.Joining = true
	_, err = client.Txn(ctx).If(clientv3.Compare(clientv3.Version(e.key()), "=", 0)).Then(clientv3.OpPut(e.key(), encode(e))).Commit()
	if err != nil {
		return fmt.Errorf("write the list of control planes: %w", err)
	}
	return nil
}

// List is the step that adds this host to the list of control planes once its
// servers are ready. The balancers of other hosts then use it.
func (m Member) List() step.Step {
	return step.Step{Name: "list this control plane", Check: m.checkListed, Apply: m.list}
}

func (m Member) entry() Entry { return Entry{Name: m.Name, IP: m.IP, Addresses: m.Addresses} }

func (m Member) checkListed(ctx context.Context) (step.Diff, error) {
	missing := step.Diff{"list " + m.Name + " as a control plane at " + m.IP}
	return m.Look(ctx, missing, func(ctx context.Context, client *clientv3.Client) (step.Diff, error) {
		found, err := client.Get(ctx, m.entry().key())
		if err != nil {
			return nil, fmt.Errorf("read the list of control planes: %w", err)
		}
		if len(found.Kvs) == 1 && string(found.Kvs[0].Value) == encode(m.entry()) {
			return nil, nil
		}
		return missing, nil
	})
}

func (m Member) list(ctx context.Context) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	return m.Do(ctx, func(client *clientv3.Client) error {
		if _, err := client.Put(ctx, m.entry().key(), encode(m.entry())); err != nil {
			return fmt.Errorf("write the list of control planes: %w", err)
		}
		return nil
	})
}

// Listed returns the list of control planes, sorted by name.
func Listed(ctx context.Context, client *clientv3.Client) ([]Entry, error) {
	found, err := client.Get(ctx, listPrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read the list of control planes: %w", err)
	}
	return entries(found.Kvs), nil
}

func entries(kvs []*mvccpb.KeyValue) (all []Entry) {
	for _, kv := range kvs {
		var e Entry
		// Skip entries of a newer version that cannot be parsed.
		if json.Unmarshal(kv.Value, &e) == nil && e.IP != "" {
			all = append(all, e)
		}
	}
	return all
}

// WatchListed calls tell with the list of control planes now and after every
// change, until ctx ends or the watch breaks.
func WatchListed(ctx context.Context, client *clientv3.Client, tell func([]Entry)) error {
	// With a required leader, the watch of a partitioned member fails instead of
	// staying silent.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	found, err := client.Get(ctx, listPrefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	tell(entries(found.Kvs))
	for event := range client.Watch(ctx, listPrefix, clientv3.WithPrefix(), clientv3.WithRev(found.Header.Revision+1)) {
		if err := event.Err(); err != nil {
			return err
		}
		now, err := Listed(ctx, client)
		if err != nil {
			return err
		}
		tell(now)
	}
	return ctx.Err()
}
