package links_test

import (
	"net/netip"
	"os/exec"
	"syscall"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Links come and go with every container, also while another list is read.
func TestListsAreCompleteWhileLinksChange(t *testing.T) {
	within(t)
	must.NoError(t, batch(`for i in $(seq 200); do echo "link add d$i type bridge"; echo "addr add 10.6.$i.1/24 dev d$i"; echo "link set d$i up"; done`).Run())
	changes := batch(`while :; do for i in $(seq 50); do
		echo "link add c$i type bridge"; echo "addr add 10.8.$i.1/24 dev c$i"; echo "link set c$i up"; echo "link del c$i"; done; done`)
	must.NoError(t, changes.Start())
	defer func() {
		_ = syscall.Kill(-changes.Process.Pid, syscall.SIGKILL)
		_ = changes.Wait()
	}()
	for range 50 {
		all, err := links.All()
		must.NoError(t, err)
		if len(all) < 203 {
			t.Fatalf("%d links, want at least 203", len(all))
		}
		routes, err := links.Routes()
		must.NoError(t, err)
		if len(routes) < 200 {
			t.Fatalf("%d routes, want at least 200", len(routes))
		}
		_, ok, err := links.Find("d200")
		if err != nil || !ok {
			t.Fatalf("find d200: %v, %v", ok, err)
		}
		must.NoError(t, links.SetBridge("br0", netip.MustParsePrefix("10.7.0.1/24"), 1500))
		_, _, err = links.BridgePorts("br0")
		must.NoError(t, err)
	}
}

// batch gives the lines that a script prints to ip, which runs them in the network
// namespace of the test.
func batch(script string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", "("+script+") | ip -batch -")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that all of it can be killed
	return cmd
}
