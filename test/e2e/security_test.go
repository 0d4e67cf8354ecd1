//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// security looks at a ready cluster as somebody who should not get in.
func security(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	t.Run("etcd without a certificate", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		for _, port := range []string{clusters.EtcdPort, clusters.GatePort} {
			if _, err := clusters.DialEtcd(t, master, port, nil).Get(ctx, "/"); err == nil {
				t.Errorf("etcd answers a client without a certificate at port %s", port)
			}
		}
	})
	t.Run("etcd as a worker", func(t *testing.T) { etcdAsWorker(t, master, worker) })
	t.Run("etcd as flannel", func(t *testing.T) { etcdAsFlannel(t, master, worker) })
	t.Run("etcd's peer port", func(t *testing.T) { peerPort(t, master, worker) })
	t.Run("a kubelet's certificate", func(t *testing.T) { notTheAPIServer(t, master, worker) })
	t.Run("a node's requests", func(t *testing.T) { nodeAsks(t, master, worker) })
	t.Run("what a node writes", func(t *testing.T) { nodeWrites(t, master, worker) })
	t.Run("a token", func(t *testing.T) { tokens(t, master, worker) })
	t.Run("a neighbour on the LAN", func(t *testing.T) { neighbour(t, master, worker) })
	t.Run("secrets at rest", func(t *testing.T) { secretsAtRest(t, master) })
	for _, m := range []hosts.Machine{master, worker} {
		t.Run("kubelet of "+m.Name, func(t *testing.T) { anonymousKubelet(t, m) })
	}
	t.Run("API server", func(t *testing.T) { anonymousAPI(t, master) })
	t.Run("without super-admin.conf", func(t *testing.T) { withoutSuperAdmin(t, master) })
	t.Run("NetworkPolicy", func(t *testing.T) { networkPolicy(t, master) })
	t.Run("CIS benchmark", func(t *testing.T) { cis(t, master, worker) })
	t.Run("no secret in the open", func(t *testing.T) { noSecretInTheOpen(t, master, worker) })
}

// etcdAsFlannel shows the gate of etcd the certificate of a worker: it reads the network,
// and writes the lease of its own host.
func etcdAsFlannel(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	flannel := clusters.DialEtcd(t, master, clusters.GatePort, []tls.Certificate{
		clusters.CertificateOf(t, worker, "etcd/flannel"),
	})
	found, err := flannel.Get(t.Context(), "/coreos.com/network/", clientv3.WithPrefix())
	if err != nil || found.Count < 5 {
		t.Fatalf("flannel sees of its network %v, %v", found, err)
	}
	written := 0
	for _, kv := range found.Kvs {
		_, err := flannel.Put(t.Context(), string(kv.Key), string(kv.Value),
			clientv3.WithLease(clientv3.LeaseID(kv.Lease)))
		own := strings.Contains(string(kv.Key), "/subnets/") && strings.Contains(string(kv.Value), `"`+worker.IP+`"`)
		if own && err == nil {
			written++
		} else if own || err == nil || !isDenied(err) {
			t.Errorf("%s writes %s: %v", worker.Name, kv.Key, err)
		}
	}
	if written != 1 {
		t.Errorf("%s can write %d leases", worker.Name, written)
	}
	for what, do := range map[string]func() error{
		"reads the cluster's state": func() error {
			_, err := flannel.Get(t.Context(), "/registry/",
				clientv3.WithPrefix())
			return err
		},
		"reads everything": func() error {
			_, err := flannel.Get(t.Context(), "",
				clientv3.WithPrefix())
			return err
		},
		"writes the cluster's state": func() error {
			_, err := flannel.Put(t.Context(), "/registry/x",
				"x")
			return err
		},
		"lists itself": func() error {
			_, err := flannel.Put(t.Context(),
				"/kube-bootstrap/control-planes/x", "x")
			return err
		},
		"leases another subnet": func() error {
			_, err := flannel.Put(t.Context(), "/coreos.com/network/subnets/10.1.0.0-24", "x")
			return err
		},
		"reserves a subnet": func() error {
			_, err := flannel.Put(t.Context(), "/coreos.com/network/reserved/10.1.0.0-24", "x")
			return err
		},
		"removes the network": func() error {
			_, err := flannel.Delete(t.Context(), "/coreos.com/",
				clientv3.WithPrefix())
			return err
		},
		"makes users": func() error { _, err := flannel.UserAdd(t.Context(), "x", "x"); return err },
		"lists users": func() error { _, err := flannel.UserList(t.Context()); return err },
		"lets itself do more": func() error {
			_, err := flannel.UserGrantRole(t.Context(), "flannel:"+worker.Name,
				"root")
			return err
		},
		"compacts": func() error { _, err := flannel.Compact(t.Context(), 1); return err },
	} {
		if err := do(); !isDenied(err) {
			t.Errorf("flannel's certificate of %s %s: %v", worker.Name, what, err)
		}
	}
}

// isDenied reports whether etcd or its gate refuses a request.
func isDenied(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "permission denied") || strings.Contains(err.Error(),
		"PermissionDenied"))
}

// peerPort tries every certificate of a worker on etcd's peer port, where a
// client can write as root. The filter of hosts closes the port to the worker,
// so the master shows the certificates to itself.
func peerPort(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	if out, err := worker.Try(t.Context(), "timeout 2 bash -c 'exec 3<>/dev/tcp/"+master.IP+"/2380'"); err == nil {
		t.Errorf("etcd's peer port is open to a worker: %s", out)
	}
	const stolen = "/run/of-the-worker"
	archive := worker.Sh(t, "tar -czhC / ."+clusters.PKIDir+" ./var/lib/kubelet/pki | base64 -w0")
	master.Sh(t, "mkdir -m 700 "+stolen+" && echo "+archive+" | base64 -d | tar -xzC "+stolen)
	defer master.Sh(t, "rm -r "+stolen)
	pairs := strings.Fields(worker.Sh(t, "find "+clusters.PKIDir+
		" /var/lib/kubelet/pki -name '*.pem' -o -name '*.crt' | grep -v ca.crt"))
	if len(pairs) < 3 {
		t.Fatalf("only %q were found", pairs)
	}
	for _, path := range []string{"members", "raft", "raft/snapshot", "version"} {
		ask := "curl -sk --http1.1 -o /dev/null -w '%{http_code} %{errormsg}' --max-time 60 "
		url := " https://" + master.IP + ":2380/" + path
		for _, cert := range append(pairs, "") {
			shown := ""
			if cert != "" {
				cert = stolen + cert
				shown = "--cert " + cert + " --key " + strings.Replace(cert, ".crt", ".key", 1)
			}
			if out, err := master.Try(t.Context(), ask+shown+url); err == nil || !strings.Contains(out, "000") ||
				!strings.Contains(out, "alert") {
				t.Errorf("/%s with %q: %s, %v", path, cert, out, err)
			}
		}
		own := "--cert " + clusters.PKIDir + "/etcd/peer.crt --key " + clusters.PKIDir + "/etcd/peer.key --cacert " +
			clusters.PKIDir + "/etcd/peer-ca.crt"
		if out := master.Sh(t, ask+own+url+" || true"); strings.HasPrefix(out, "000") {
			t.Errorf("/%s as a peer: %s", path, out)
		}
	}
}

// notTheAPIServer: a client that trusts the cluster's authority must not accept a
// kubelet's certificate as the API server's.
func notTheAPIServer(t *testing.T, hosts ...hosts.Machine) {
	t.Helper()
	for _, m := range hosts {
		verify := "openssl verify -CAfile " + clusters.PKIDir +
			"/ca.crt /var/lib/kubelet/pki/kubelet-server-current.pem"
		if out, err := m.Try(t.Context(), verify); err == nil {
			t.Errorf("%s: %s", m.Name, out)
		}
		if out, err := m.Try(t.Context(), strings.Replace(verify, "server", "client", 1)); err != nil {
			t.Errorf("%s: the check itself fails: %s", m.Name, out)
		}
	}
}

func secretsAtRest(t *testing.T, master hosts.Machine) {
	t.Helper()
	const word = "a-word-that-stands-nowhere-else"
	master.Kubectl(t, "create secret generic at-rest --from-literal=key="+word)
	defer master.Kubectl(t, "delete secret at-rest")
	found, err := clusters.EtcdClient(t, master, "apiserver-etcd-client").Get(t.Context(), "/registry/secrets/",
		clientv3.WithPrefix())
	if err != nil || found.Count == 0 {
		t.Fatalf("no secrets in etcd: %v", err)
	}
	for _, kv := range found.Kvs {
		if !strings.HasPrefix(string(kv.Value), "k8s:enc:") || strings.Contains(string(kv.Value), word) {
			t.Errorf("%s can be read", kv.Key)
		}
	}
	if out, _ := master.Try(t.Context(), "grep -rl "+word+
		" /var/lib/kube-bootstrap /var/log /var/lib/kubelet"); out != "" {
		t.Errorf("the secret stands in %s", out)
	}
}

// noSecretInTheOpen takes every secret that the hosts have and looks for it
// where anybody can read.
func noSecretInTheOpen(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	token := clusters.NewToken(t, master)
	_, secret, _ := strings.Cut(token.Token, ".")
	words := []string{secret}
	keys := master.Sh(t, "cat "+clusters.PKIDir+"/*.key "+clusters.PKIDir+
		"/etcd/*.key | grep -v -e -----; sed -n 's/^ *secret: *//p' /etc/kubernetes/apiserver/encryption.yaml")
	for _, line := range strings.Fields(keys) {
		if len(line) > 40 {
			words = append(words, line)
		}
	}
	if len(words) < 10 {
		t.Fatalf("only %d secrets were found", len(words))
	}
	// By a file: what this test itself types would show in ps.
	list := filepath.Join(t.TempDir(), "words")
	must.NoError(t, os.WriteFile(list, []byte(strings.Join(words, "\n")+"\n"), 0o600))
	for _, m := range []hosts.Machine{master, worker} {
		m.Put(t, list, "/dev/shm/words")
		defer m.Sh(t, "rm -rf /dev/shm/words /root/dump")
		clusters.Dumps(t, m)
		for what, show := range map[string]string{
			"ps":   "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'",
			"logs": "journalctl --no-pager -q; docker logs kubelet 2>&1; cat /var/log/pods/*/*/*.log",
			"status": "kube-bootstrap status -o json; kube-bootstrap status; kube-bootstrap config view; " +
				"kube-bootstrap token list -o json",
			"a dump": "find /root/dump -type f -exec cat {} +",
			"files": "find /etc /var/lib/kube-bootstrap /var/lib/kubelet /var/log /run /tmp -xdev -type f -perm " +
				"/044 -size -1024k -exec cat {} + 2>/dev/null",
		} {
			out, err := m.Try(t.Context(), "{ "+show+"; } 2>/dev/null | grep -a -o -F -f /dev/shm/words | sort -u")
			if err != nil || out != "" {
				t.Errorf("%s: %s shows %d secrets: %v", m.Name, what, len(strings.Fields(out)), err)
			}
		}
	}
	if out := worker.Sh(t, "ls /etc/kubernetes/bootstrap-kubelet.conf 2>/dev/null; true"); out != "" {
		t.Errorf("the worker still keeps the token: %s", out)
	}
	for _, m := range []hosts.Machine{master, worker} {
		if out := m.Sh(t, "find /etc/kubernetes /var/lib/kubelet/pki /var/lib/kube-bootstrap -name '*.key' -perm "+
			"/077 -o -name '*.conf' -perm /077 -o -name 'kubelet-*.pem' -perm /077 -type f"); out != "" {
			t.Errorf("%s: others may read %s", m.Name, out)
		}
	}
}
