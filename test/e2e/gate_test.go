//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// etcdAsWorker tries every certificate of a worker at etcd itself, and the holes of
// several releases of etcd at its gate.
func etcdAsWorker(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	if out, err := worker.Try(t.Context(), "timeout 2 bash -c 'exec 3<>/dev/tcp/"+master.IP+"/"+clusters.EtcdPort+
		"'"); err == nil {
		t.Errorf("etcd's port for clients is open to a worker: %s", out)
	}
	flannel := clusters.CertificateOf(t, worker, "etcd/flannel")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := clusters.DialEtcd(t, master, clusters.EtcdPort, []tls.Certificate{flannel}).Get(ctx,
		"/coreos.com/network/config"); err == nil {
		t.Error("etcd accepts the certificate of a worker")
	}
	client := clusters.DialEtcd(t, master, clusters.GatePort, []tls.Certificate{flannel})
	key, value, _ := leaseOf(t, client, worker)
	foreign, _, foreignLease := leaseOf(t, client, master)
	nested := clientv3.OpTxn(nil, []clientv3.Op{
		clientv3.OpPut("/registry/x", "x"), clientv3.OpGet("/registry/", clientv3.WithPrefix()),
	}, nil)
	put := func(value string, options ...clientv3.OpOption) func() error {
		return func() error { _, err := client.Put(t.Context(), key, value, options...); return err }
	}
	for what, do := range map[string]func() error{
		"nests a transaction": func() error { _, err := client.Txn(t.Context()).Then(nested).Commit(); return err },
		"reads in a transaction": func() error {
			_, err := client.Txn(t.Context()).Then(clientv3.OpGet("/registry/", clientv3.WithPrefix())).Commit()
			return err
		},
		"reads the value before in a transaction": func() error {
			_, err := client.Txn(t.Context()).Then(clientv3.OpPut(key, value, clientv3.WithPrevKV())).Commit()
			return err
		},
		"compares a key of the cluster": func() error {
			_, err := client.Txn(t.Context()).If(clientv3.Compare(clientv3.Version("/registry/x"), "=",
				0)).Then(clientv3.OpPut(key, value)).Commit()
			return err
		},
		"watches from a key": func() error {
			return watchError(client.Watch(t.Context(), "/coreos.com/network/config", clientv3.WithFromKey()))
		},
		"watches the cluster's state": func() error {
			return watchError(client.Watch(t.Context(), "/registry/", clientv3.WithPrefix()))
		},
		"reads from a key": func() error {
			_, err := client.Get(t.Context(), "/coreos.com/network/config", clientv3.WithFromKey())
			return err
		},
		"reads the value before": put(value, clientv3.WithPrevKV()),
		"attaches its lease to another key": func() error {
			lease, err := client.Grant(t.Context(), 60)
			if err != nil {
				return err
			}
			_, err = client.Put(t.Context(), foreign, value, clientv3.WithLease(lease.ID))
			return err
		},
		"revokes the lease of another host": func() error {
			_, err := client.Revoke(t.Context(),
				foreignLease)
			return err
		},
		"compacts":                              func() error { _, err := client.Compact(t.Context(), 1); return err },
		"lists leases":                          func() error { _, err := client.Leases(t.Context()); return err },
		"lists members":                         func() error { _, err := client.MemberList(t.Context()); return err },
		"writes an IPv6 address":                put(`{"PublicIP":"::1"}`),
		"writes the address of a control plane": put(fmt.Sprintf(`{"PublicIP":%q}`, master.IP)),
		"writes another MAC address": put(strings.Replace(value, `"VtepMAC":"0a:4b:`,
			`"VtepMAC":"0a:4c:`, 1)),
		// flanneld could use none of these, and the agents of all hosts would restart it.
		"writes an address twice":  put(strings.TrimSuffix(value, "}") + `,"PublicIP":null}`),
		"writes the backend twice": put(strings.TrimSuffix(value, "}") + `,"backenddata":{}}`),
		"writes an address with escape": put(strings.Replace(value, `"`+worker.IP+`"`,
			fmt.Sprintf(`"\u%04x%s"`, worker.IP[0], worker.IP[1:]), 1)),
	} {
		if err := do(); !isDenied(err) {
			t.Errorf("%s %s: %v", worker.Name, what, err)
		}
	}
	if err := put(strings.Repeat("x", 32<<10))(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("%s writes 32 KiB: %v", worker.Name, err)
	}
}

// watchError returns the error of the first answer of a watch.
func watchError(watch clientv3.WatchChan) error {
	answer := <-watch
	return answer.Err()
}

// leaseOf returns the lease of a host.
func leaseOf(t *testing.T, client *clientv3.Client, m hosts.Machine) (key, value string, id clientv3.LeaseID) {
	t.Helper()
	found, err := client.Get(t.Context(), "/coreos.com/network/subnets/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		if strings.Contains(string(kv.Value), `"`+m.IP+`"`) {
			return string(kv.Key), string(kv.Value), clientv3.LeaseID(kv.Lease)
		}
	}
	t.Fatalf("%s has no lease", m.Name)
	return "", "", 0
}
