package flannel

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func testDaemon(t *testing.T) Flanneld {
	files := host.Files{Root: t.TempDir()}
	return Flanneld{
		Files: files, Image: "flannel:test",
		Etcd: EtcdAccess{
			Files: files, Endpoints: []string{"https://10.0.0.1:2379", "https://10.0.0.2:2379"},
			CA: "/etc/kubernetes/pki/etcd/ca.crt", Cert: "/etc/kubernetes/pki/flannel.crt",
			Key: "/etc/kubernetes/pki/flannel.key",
		},
		PublicIP: netip.MustParseAddr("10.0.0.3"), IPMasq: true, SubnetDir: "/var/lib/kube-bootstrap/flannel",
		RestartPolicy: "unless-stopped",
	}
}

func TestContainerAsksForLittle(t *testing.T) {
	c, err := testDaemon(t).container()
	if err != nil {
		t.Fatal(err)
	}
	if c.Privileged || c.HostPID || !slices.Equal(c.Caps, []string{"NET_ADMIN", "NET_RAW"}) {
		t.Errorf("privileged %t, host PIDs %t, capabilities %v", c.Privileged, c.HostPID, c.Caps)
	}
	for _, m := range c.Mounts {
		if !m.ReadOnly && m.Target != "/var/lib/kube-bootstrap/flannel" {
			t.Errorf("%s can be written to", m.Target)
		}
	}
	want := "flanneld --etcd-endpoints=https://10.0.0.1:2379,https://10.0.0.2:2379 --etcd-prefix=/coreos.com/network" +
		" --etcd-cafile=/etc/kubernetes/pki/etcd/ca.crt --etcd-certfile=/etc/kubernetes/pki/flannel.crt " +
		"--etcd-keyfile=/etc/kubernetes/pki/flannel.key" +
		" --subnet-file=/var/lib/kube-bootstrap/flannel/subnet.env --ip-masq=true --healthz-port=0 --iface=10.0.0.3 " +
		"--public-ip=10.0.0.3"
	if got := strings.Join(c.Command, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRenewedCertificateReplacesContainer(t *testing.T) {
	d := testDaemon(t)
	before, _ := d.container()
	if err := d.Files.Write(d.Etcd.Cert, []byte("renewed"), 0o600); err != nil {
		t.Fatal(err)
	}
	after, _ := d.container()
	if slices.Equal(before.Env, after.Env) {
		t.Error("the container is the same with another certificate")
	}
}

// TestUndoReportsAnUnreadableLease: the routes are unknown until it can be read.
func TestUndoReportsAnUnreadableLease(t *testing.T) {
	d := testDaemon(t)
	must.NoError(t, d.Files.MkdirAll(d.leasePath())) // a directory
	if err := d.deleteRoutes(); err == nil {
		t.Error("no error")
	}
}
