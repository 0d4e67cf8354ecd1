//go:build root

package flannel

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestUndoRemovesTheRoutesOfHostGW: no link takes these routes with it, and subnet.env may be
// missing or damaged. On a host on which flanneld never ran, they are the user's.
func TestUndoRemovesTheRoutesOfHostGW(t *testing.T) {
	hosttest.InNetns(t)
	hosttest.Shell(t, "ip link add eth0 type veth peer name eth1\nip link set eth1 up\nip addr add 10.5.0.1/24 dev eth0\nip link set eth0 up")
	const ran = "/var/lib/kube-bootstrap/flannel"
	for name, c := range map[string]struct {
		dir, file string
		kept      bool
	}{
		"lease":                        {ran, good, false},
		"damaged lease":                {ran, "FLANNEL_NETWORK=", false},
		"missing lease":                {ran, "", false},
		"flanneld never ran":           {"", "", true},
		"a directory of somebody else": {"/run/flannel", "", true},
	} {
		hosttest.Shell(t, "ip route replace 10.1.3.0/24 via 10.5.0.3")
		d := testDaemon(t)
		d.Backend, d.Network = "host-gw", netip.MustParsePrefix("10.1.0.0/16")
		d.Docker = func() *docker.Engine { return docker.Open(filepath.Join(d.Files.Root, "none.sock")) }
		switch {
		case c.dir == ran:
			must.NoError(t, d.Files.MkdirAll(d.SubnetDir))
		case c.dir != "":
			d.SubnetDir = c.dir
			must.NoError(t, os.MkdirAll(d.Files.Path(c.dir), 0o755))
		}
		if c.file != "" {
			must.NoError(t, d.Files.Write(d.leasePath(), []byte(c.file), 0o644))
		}
		for range 2 {
			must.NoError(t, d.undo(t.Context()))
		}
		routes, err := links.Routes()
		must.NoError(t, err)
		if kept := slices.ContainsFunc(routes, func(r links.Route) bool { return r.Dst.String() == "10.1.3.0/24" }); kept != c.kept {
			t.Errorf("%s: the route is kept: %t", name, kept)
		}
	}
}

// TestUndoRemovesTemporaryFiles that a killed flanneld has left.
func TestUndoRemovesTemporaryFiles(t *testing.T) {
	hosttest.InNetns(t)
	d := testDaemon(t)
	d.Docker = func() *docker.Engine { return docker.Open(filepath.Join(d.Files.Root, "none.sock")) }
	must.NoError(t, d.Files.MkdirAll(d.SubnetDir))
	for _, name := range []string{".subnet.env", ".subnet.env7012356"} {
		must.NoError(t, d.Files.Write(filepath.Join(d.SubnetDir, name), nil, 0o600))
	}
	must.NoError(t, d.undo(t.Context()))
	if d.Files.Exists(d.SubnetDir) {
		t.Error(d.SubnetDir + " remains")
	}
}
