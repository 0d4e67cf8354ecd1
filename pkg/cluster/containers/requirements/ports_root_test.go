//go:build root

package requirements

import (
	"net"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTheAPIPortOfARemoteEngine is not a port of this machine.
func TestTheAPIPortOfARemoteEngine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer l.Close()
	setup := testhost.Setup{Cluster: unitCluster(t), Publish: true, APIPort: l.Addr().(*net.TCPAddr).Port}
	for remote, want := range map[bool]int{false: 1, true: 0} {
		err := checks{Setup: setup, engine: engineMachine{remote: remote}}.portTaken(t.Context())
		if found := step.Problems(err); len(found) != want || want > 0 && !strings.HasPrefix(found[0].Text, "--apiserver-port ") {
			t.Errorf("remote %t: %v", remote, err)
		}
	}
}
