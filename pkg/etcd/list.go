package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// listPrefix is the prefix of the list of control planes: one key per member
// name. Every host may read it with flannel's certificate.
const listPrefix = "/kube-bootstrap/control-planes/"

// OfMembers lists the prefixes of the keys that are wrong in a cluster of other members.
func OfMembers() []string { return []string{listPrefix, lockPrefix} }

// ControlPlaneEntry is a control plane in the list.
type ControlPlaneEntry struct {
	Name      string   `json:"name"`
	IP        string   `json:"ip"`
	Addresses []string `json:"addresses,omitempty"` // further ones, from which it may connect
	Joining   bool     `json:"joining,omitempty"`   // it does not answer yet
	// Former means that the cluster continues without this control plane. Its host may ask etcd whether it does.
	Former bool `json:"former,omitempty"`
}

func (e ControlPlaneEntry) key() string { return listPrefix + e.Name }

// FormerEntry returns the value of an entry of the list with Former set, or "" for the entry of the host own.
func FormerEntry(value, own string) string {
	var e ControlPlaneEntry
	if json.Unmarshal([]byte(value), &e) != nil || e.Name == own {
		return ""
	}
	e.Former, e.Joining = true, false
	return encode(e)
}

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
	needed := func(context.Context) (bool, error) { return !m.Data.Files.Exists(joinedFile), nil }
	todo := "announce " + m.Name + " as a control plane at " + m.Client.IP
	return step.When("announce", "announce this control plane", todo, needed, m.announce).Waiting()
}

// announce does not change an entry of an earlier run, except for that of a former control plane.
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
	if err := CheckName(ctx, client, m.Name); err != nil {
		return err
	}
	return putJoining(ctx, client, m.entry())
}

func putJoining(ctx context.Context, client *clientv3.Client, e ControlPlaneEntry) error {
	found, err := client.Get(ctx, e.key())
	if err != nil {
		return fmt.Errorf("read the list of control planes: %w", err)
	}
	var before ControlPlaneEntry
	revision := int64(0) // of a key that does not exist
	for _, kv := range found.Kvs {
		if json.Unmarshal(kv.Value, &before) == nil && !before.Former {
			return nil
		}
		revision = kv.ModRevision
	}
	e.Joining = true
	_, err = client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(e.key()), "=", revision)).
		Then(clientv3.OpPut(e.key(), encode(e))).Commit()
	return step.Wrap(err, "write the list of control planes")
}

// List is the step that adds this host to the list of control planes once its
// servers are ready. The balancers of other hosts then use it.
func (m Member) List() step.Step {
	key, value := m.entry().key(), encode(m.entry())
	missing := step.Diff{"list " + m.Name + " as a control plane at " + m.Client.IP}
	return m.Client.Step("list-control-plane", "list this control plane", missing,
		func(ctx context.Context, client *clientv3.Client) (step.Diff, error) {
			found, err := client.Get(ctx, key)
			if err != nil {
				return nil, fmt.Errorf("read the list of control planes: %w", err)
			}
			if len(found.Kvs) == 1 && string(found.Kvs[0].Value) == value {
				return nil, nil
			}
			return missing, nil
		}, func(ctx context.Context, client *clientv3.Client) error {
			ctx, cancel := step.Limited(ctx)
			defer cancel()
			if _, err := client.Put(ctx, key, value); err != nil {
				return fmt.Errorf("write the list of control planes: %w", err)
			}
			return nil
		})
}

// unlist removes a host from the list of control planes.
func unlist(ctx context.Context, client *clientv3.Client, name string) error {
	_, err := client.Delete(ctx, ControlPlaneEntry{Name: name}.key())
	return err
}

func (m Member) entry() ControlPlaneEntry {
	return ControlPlaneEntry{Name: m.Name, IP: m.Client.IP, Addresses: m.Addresses}
}

// Listed returns the list of control planes, sorted by name, without former ones.
func Listed(ctx context.Context, client *clientv3.Client) ([]ControlPlaneEntry, error) {
	all, err := EverListed(ctx, client)
	return slices.DeleteFunc(all, func(e ControlPlaneEntry) bool { return e.Former }), err
}

// EverListed returns the list of control planes with the former ones, sorted by name.
func EverListed(ctx context.Context, client *clientv3.Client) ([]ControlPlaneEntry, error) {
	found, err := client.Get(ctx, listPrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read the list of control planes: %w", err)
	}
	var all []ControlPlaneEntry
	for _, kv := range found.Kvs {
		var e ControlPlaneEntry
		// Skip entries of a newer version that cannot be parsed.
		if json.Unmarshal(kv.Value, &e) == nil && e.IP != "" {
			all = append(all, e)
		}
	}
	return all, nil
}

// WatchListed calls report with the list of control planes now and after every
// change, until ctx ends or the watch breaks.
func WatchListed(ctx context.Context, client *clientv3.Client, report func([]ControlPlaneEntry)) error {
	return watch(ctx, client, listPrefix, func() error {
		now, err := Listed(ctx, client)
		if err == nil {
			report(now)
		}
		return err
	})
}

// watch calls read once it watches the keys below a prefix, and after each change, until ctx
// ends, the watch breaks or read fails.
func watch(ctx context.Context, client *clientv3.Client, prefix string, read func() error) error {
	// With a required leader, the watch of a partitioned member fails.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for answer := range client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify()) {
		if err := answer.Err(); err != nil {
			return fmt.Errorf("watch %s: %w", prefix, err)
		}
		if err := read(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// removedPrefix is the prefix of one key per removed worker.
const removedPrefix = "/kube-bootstrap/removed/"

// Removed is a worker that was removed from the cluster. Its kubelet's certificates
// are valid until they expire, so the API servers must refuse them.
type Removed struct {
	Host     string    `json:"-"`
	Until    time.Time `json:"until"`              // the last of these certificates expires
	Accepted []string  `json:"accepted,omitempty"` // SHA-256 of certificates of a later worker with this name
	// Compromised says that somebody else has these certificates.
	Compromised bool `json:"compromised,omitempty"`
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
	if _, err := client.Delete(ctx, removedPrefix+host); err != nil {
		return fmt.Errorf("accept the certificates of host %s again: %w", host, err)
	}
	return nil
}

// ReadRemoved returns the record of a host, nil if its certificates are not refused.
func ReadRemoved(ctx context.Context, client *clientv3.Client, host string) (*Removed, error) {
	found, err := client.Get(ctx, removedPrefix+host)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", removedPrefix+host, err)
	}
	if len(found.Kvs) == 0 {
		return nil, nil
	}
	r := &Removed{Host: host}
	_ = json.Unmarshal(found.Kvs[0].Value, r) // all certificates are refused then
	return r, nil
}

// CheckName returns a problem if a control plane must not have a name [name-compromised]. The
// API servers accept all certificates of its kubelet, which it issues itself.
func CheckName(ctx context.Context, client *clientv3.Client, name string) error {
	r, err := ReadRemoved(ctx, client, name)
	if err != nil || r == nil || !r.Compromised {
		return err
	}
	return &step.Problem{Name: "name-compromised", Firm: true,
		Text: "a host " + name +
			" was removed with `kube-bootstrap forget --compromised`, and as a control plane of this name its stolen " +
			"certificates would be accepted",
		Remedy: "give this host another name (--host-name)"}
}

// Accept replaces the accepted certificates, unless the record has changed since r was read.
func (r Removed) Accept(ctx context.Context, client *clientv3.Client, certificates []string) error {
	key := removedPrefix + r.Host
	now, err := client.Get(ctx, key)
	if err != nil || len(now.Kvs) == 0 || string(now.Kvs[0].Value) != encode(r) {
		return err
	}
	r.Accepted = certificates
	same := clientv3.Compare(clientv3.ModRevision(key), "=", now.Kvs[0].ModRevision)
	_, err = client.Txn(ctx).If(same).Then(clientv3.OpPut(key, encode(r))).Commit()
	return err
}

// ListRemoved returns the removed workers. It deletes records that have expired.
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

// FollowRemoved calls report at its start and whenever a record changes, until
// ctx ends or the watch breaks.
func FollowRemoved(ctx context.Context, client *clientv3.Client, report func()) error {
	return watch(ctx, client, removedPrefix, func() error {
		report()
		return nil
	})
}
