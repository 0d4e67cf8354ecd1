package etcd

import (
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

func testMember(t *testing.T) Member {
	return Member{
		Files: host.Files{Root: t.TempDir()}, Image: "etcd:test", Name: "one", IP: "10.0.0.1", RestartPolicy: "unless-stopped",
		CA: "/etc/kubernetes/pki/etcd/ca.crt", Cert: "/etc/kubernetes/pki/etcd/server.crt", Key: "/etc/kubernetes/pki/etcd/server.key",
		PeerCA: "/etc/kubernetes/pki/etcd/peer-ca.crt", PeerCert: "/etc/kubernetes/pki/etcd/peer.crt", PeerKey: "/etc/kubernetes/pki/etcd/peer.key",
		PeerName: "etcd-peer",
		RootCert: "/etc/kubernetes/pki/etcd/root.crt", RootKey: "/etc/kubernetes/pki/etcd/root.key",
	}
}

func TestContainerAsksForLittle(t *testing.T) {
	m := testMember(t)
	c, err := m.container()
	if err != nil {
		t.Fatal(err)
	}
	if c.Privileged || c.HostPID || len(c.Caps) > 0 {
		t.Errorf("privileged %t, host PIDs %t, capabilities %v", c.Privileged, c.HostPID, c.Caps)
	}
	for _, mount := range c.Mounts {
		if !mount.ReadOnly && mount.Target != inside {
			t.Errorf("%s can be written to", mount.Target)
		}
		if mount.Target == m.RootKey {
			t.Error("sees the key of its own root user")
		}
	}
}

func TestEveryPortNeedsACertificate(t *testing.T) {
	command := testMember(t).command("")
	for _, flag := range []string{"--client-cert-auth", "--peer-client-cert-auth"} {
		if !slices.Contains(command, flag) {
			t.Errorf("no %s in %v", flag, command)
		}
	}
	for _, arg := range command {
		if strings.Contains(arg, "http://") && arg != "--listen-metrics-urls=http://127.0.0.1:2381" {
			t.Errorf("%s is open", arg)
		}
	}
}

// TestPeerPortTrustsPeersOnly: the peer port must reject every certificate of a
// worker, because a client of that port can act as root.
func TestPeerPortTrustsPeersOnly(t *testing.T) {
	m := testMember(t)
	wantArgs(t, m, "--peer-trusted-ca-file="+m.PeerCA, "--peer-cert-file="+m.PeerCert, "--peer-key-file="+m.PeerKey, "--peer-cert-allowed-cn=etcd-peer")
}

func TestInitialCluster(t *testing.T) {
	m := testMember(t)
	wantArgs(t, m, "--initial-cluster=one=https://10.0.0.1:2380", "--initial-cluster-state=new")
	const cluster = "one=https://10.0.0.1:2380,two=https://10.0.0.2:2380"
	if err := m.Files.Write(joinedFile, []byte(cluster+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantArgs(t, m, "--initial-cluster="+cluster, "--initial-cluster-state=existing")
}

func wantArgs(t *testing.T, m Member, args ...string) {
	t.Helper()
	c, err := m.container()
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range args {
		if !slices.Contains(c.Command, arg) {
			t.Errorf("no %s in %v", arg, c.Command)
		}
	}
}

func TestRenewedCertificateReplacesContainer(t *testing.T) {
	m := testMember(t)
	before, _ := m.container()
	if err := m.Files.Write(m.Cert, []byte("renewed"), 0o600); err != nil {
		t.Fatal(err)
	}
	after, _ := m.container()
	if slices.Equal(before.Env, after.Env) {
		t.Error("the container is the same with another certificate")
	}
}

func TestFreshHostHasNoUsers(t *testing.T) {
	diff, err := testMember(t).EnableAuth().Check(t.Context())
	if err != nil || !strings.Contains(diff.String(), "enable etcd auth") {
		t.Errorf("got %v, %v", diff, err)
	}
}

func TestClusterToJoinNamesEveryMemberOnce(t *testing.T) {
	m := testMember(t)
	others := []*etcdserverpb.Member{{Name: "two", PeerURLs: []string{"https://10.0.0.2:2380"}}}
	if got := m.initialCluster(others); got != "" {
		t.Errorf("not a member, and yet %q", got)
	}
	// etcd has no name for a member that has not started.
	own := &etcdserverpb.Member{PeerURLs: []string{"https://10.0.0.1:2380"}, IsLearner: true}
	if got, want := m.initialCluster(append(others, own)), "one=https://10.0.0.1:2380,two=https://10.0.0.2:2380"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTheNewestVersionIsRecorded: an older etcd cannot read the data of a newer
// etcd, even if a user starts it in spite of the warning.
func TestTheNewestVersionIsRecorded(t *testing.T) {
	m := testMember(t)
	for _, c := range []struct{ start, want string }{{"3.6.8-0", "3.6.8-0"}, {"3.7.0-0", "3.7.0-0"}, {"3.6.8-0", "3.7.0-0"}} {
		m.Version = c.start
		if err := m.noteVersion(); err != nil {
			t.Fatal(err)
		}
		if got, err := Started(m.Files); err != nil || got != c.want {
			t.Errorf("after %s: %q, %v, want %q", c.start, got, err, c.want)
		}
	}
	if err := m.removeData(); err != nil {
		t.Fatal(err)
	}
	if got, err := Started(m.Files); err != nil || got != "" {
		t.Errorf("without data: %q, %v", got, err)
	}
}
