package etcd

import (
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

func testContainer(t *testing.T) MemberContainer {
	files := host.Files{Root: t.TempDir()}
	root := Credentials{
		Files: files, CA: "/etc/kubernetes/pki/etcd/ca.crt",
		Cert: "/etc/kubernetes/pki/etcd/root.crt", Key: "/etc/kubernetes/pki/etcd/root.key",
	}
	return MemberContainer{
		Member: Member{Client: Client{Credentials: root, IP: "10.0.0.1"}, Data: Data{files}, Name: "one"},
		Image:  "etcd:test", RestartPolicy: "unless-stopped",
		ServingCert: "/etc/kubernetes/pki/etcd/server.crt", ServingKey: "/etc/kubernetes/pki/etcd/server.key",
		PeerCA: "/etc/kubernetes/pki/etcd/peer-ca.crt", PeerCert: "/etc/kubernetes/pki/etcd/peer.crt",
		PeerKey:  "/etc/kubernetes/pki/etcd/peer.key",
		PeerName: "etcd-peer",
	}
}

func TestContainerAsksForLittle(t *testing.T) {
	s := testContainer(t)
	c, err := s.definition()
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
		if mount.Target == s.Member.Client.Credentials.Key {
			t.Error("sees the key of its own root user")
		}
	}
}

func TestEveryPortNeedsACertificate(t *testing.T) {
	command := testContainer(t).command("")
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
	s := testContainer(t)
	wantArgs(t, s, "--peer-trusted-ca-file="+s.PeerCA, "--peer-cert-file="+s.PeerCert, "--peer-key-file="+s.PeerKey,
		"--peer-cert-allowed-cn=etcd-peer")
}

// TestNoWorkerReachesEtcd: the authority of the workers' certificates opens no port.
func TestNoWorkerReachesEtcd(t *testing.T) {
	s := testContainer(t)
	wantArgs(t, s, "--trusted-ca-file="+s.PeerCA, "--enable-grpc-gateway=false")
	if slices.Contains(s.command(""), "--trusted-ca-file="+s.Member.Client.Credentials.CA) ||
		s.Member.Client.Credentials.CA == s.PeerCA {
		t.Error("etcd trusts the authority of workers")
	}
}

func TestInitialCluster(t *testing.T) {
	s := testContainer(t)
	wantArgs(t, s, "--initial-cluster=one=https://10.0.0.1:2380", "--initial-cluster-state=new")
	const cluster = "one=https://10.0.0.1:2380,two=https://10.0.0.2:2380"
	if err := s.Member.Data.Files.Write(joinedFile, []byte(cluster+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantArgs(t, s, "--initial-cluster="+cluster, "--initial-cluster-state=existing")
}

func wantArgs(t *testing.T, s MemberContainer, args ...string) {
	t.Helper()
	c, err := s.definition()
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range args {
		if !slices.Contains(c.Command, arg) {
			t.Errorf("no %s in %v", arg, c.Command)
		}
	}
}

// TestAForcedMemberIsAlone: nothing but its host reaches the copy of the data.
func TestAForcedMemberIsAlone(t *testing.T) {
	s := testContainer(t)
	s.ExtraArgs = config.Arguments{"quota-backend-bytes": "1"}
	alone := s.alone()
	wantArgs(t, alone, "--force-new-cluster=true", "--listen-client-urls=https://127.0.0.1:2379",
		"--listen-peer-urls=https://127.0.0.1:2380", "--quota-backend-bytes=1")
	c, err := alone.definition()
	if err != nil || c.Name == container || c.Mounts[0].Source != s.Member.Data.Files.Path(CopyDir) {
		t.Errorf("%s uses %v, %v", c.Name, c.Mounts, err)
	}
	if len(s.ExtraArgs) != 1 {
		t.Errorf("the arguments of the member are now %v", s.ExtraArgs)
	}
}

func TestRenewedCertificateReplacesContainer(t *testing.T) {
	s := testContainer(t)
	before, _ := s.definition()
	if err := s.Member.Data.Files.Write(s.ServingCert, []byte("renewed"), 0o600); err != nil {
		t.Fatal(err)
	}
	after, _ := s.definition()
	if slices.Equal(before.Env, after.Env) {
		t.Error("the container is the same with another certificate")
	}
}

func TestFreshHostHasNoUsers(t *testing.T) {
	diff, err := testContainer(t).Member.Client.EnableAuth().Check(t.Context())
	if err != nil || !strings.Contains(diff.String(), "enable etcd auth") {
		t.Errorf("got %v, %v", diff, err)
	}
}
