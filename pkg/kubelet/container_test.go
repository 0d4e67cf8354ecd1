package kubelet

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestNoOutageNeedsNoDocker: the zero time requires nothing, so that the step
// asks Docker only after an outage.
func TestNoOutageNeedsNoDocker(t *testing.T) {
	down := filepath.Join(t.TempDir(), "d.sock") // a socket on which nobody listens
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: down, Net: "unix"})
	must.NoError(t, err)
	socket.SetUnlinkOnClose(false)
	must.NoError(t, socket.Close())
	c := InstanceIn(func() *docker.Engine { return docker.Open(down) })
	for end, asks := range map[time.Time]bool{{}: false, time.Unix(1, 0): true} {
		diff, err := c.RestartAfter(func() time.Time { return end }).Check(t.Context())
		if len(diff) > 0 || step.IsUnanswered(err) != asks {
			t.Errorf("%s: got %q, %v", end, diff, err)
		}
	}
}

// As a kubelet of 1.36 logs while there is no API server, hundreds of times.
const waiting = `E1121 08:15:5%d.595397       1 kubelet.go:3410] "No need to create a mirror pod, since failed to get node info from the cluster" err="node \"a\" not found" node="a"
I1121 08:15:5%d.600000       1 kubelet_node_status.go:75] "Attempting to register node" node="a"
E1121 08:15:5%d.601397       1 kubelet_node_status.go:107] "Unable to register node with API server" err="Post \"https://10.0.0.1:6443/api/v1/nodes\": dial tcp 10.0.0.1:6443: connect: connection refused" node="a"
`

func TestComplaintsAreToldOnce(t *testing.T) {
	var log strings.Builder
	log.WriteString(`E1121 08:15:00.000000       1 pod_workers.go:1324] "Error syncing pod, skipping" err="failed to \"StartContainer\" for \"kube-apiserver\" with ErrImageNeverPull"` + "\n")
	for i := range 9 {
		fmt.Fprintf(&log, waiting, i, i, i)
	}
	got := complaints(log.String(), 15)
	want := []string{"ErrImageNeverPull", "Unable to register node"}
	lines := strings.Split(got, "\n")
	if len(lines) != len(want) {
		t.Fatalf("told are %d lines:\n%s", len(lines), got)
	}
	for i, text := range want {
		if !strings.Contains(lines[i], text) {
			t.Errorf("line %d is %q, want %q", i, lines[i], text)
		}
	}
}

func TestWhatIsNoLogLineIsTold(t *testing.T) {
	const died = `Error: failed to load kubelet config file "/var/lib/kubelet/config.yaml": unknown field "failCgroupV1"`
	if got := complaints("I1121 08:15:00.000000       1 server.go:1] \"Started\"\n"+died+"\n", 15); got != died {
		t.Errorf("told is %q", got)
	}
}

func TestALogWithoutComplaintsIsToldAsItEnds(t *testing.T) {
	const log = "I1121 08:15:00.000000       1 server.go:1] \"One\"\nI1121 08:15:00.000000       1 server.go:1] \"Two\""
	if got := complaints(log+"\n", 1); !strings.HasSuffix(log, got) || got == "" {
		t.Errorf("told is %q", got)
	}
}
