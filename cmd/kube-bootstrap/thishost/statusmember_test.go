package thishost

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestTheListOfControlPlanes(t *testing.T) {
	s := Status{
		ControlPlanes: []balancer.Backend{
			{
				IP: "192.0.2.1", APIServer: true, Etcd: true,
			}, {IP: "192.0.2.2", Etcd: true}, {IP: "192.0.2.3"}, {IP: "192.0.2.4", Joining: true},
		},
		Etcd: []etcd.MemberStatus{
			{
				IP: "192.0.2.1", Up: true, Healthy: true, Leader: true, Revision: 7,
			}, {IP: "192.0.2.2", Up: true, Healthy: true, Revision: 6},
			{IP: "192.0.2.3"}, {IP: "192.0.2.4", Up: true, Healthy: true, Learner: true},
		},
	}
	const want = `CONTROL PLANE API SERVER ETCD MEMBER
192.0.2.1 ready ready leader, revision 7
192.0.2.2 not ready ready voter, revision 6
192.0.2.3 not ready not ready down
192.0.2.4 joining joining learner`
	if got := table(t, s.printControlPlanes); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	s.ControlPlanes = s.ControlPlanes[:1]
	if got := table(t, s.printControlPlanes); got != "" {
		t.Errorf("for a single control plane:\n%s", got)
	}
}

func TestOnlyTheLastRepairsAreShown(t *testing.T) {
	var s Status
	for i := range 7 {
		s.Repairs = append(s.Repairs, agent.Repair{
			At: time.Unix(int64(i), 0).UTC(), Step: "start etcd", Changes: []string{"run container etcd"},
		})
	}
	s.Repairs[6].Error = "no answer"
	lines := strings.Split(table(t, s.printRepairs), "\n")
	if len(lines) != 6 || !strings.HasPrefix(lines[1], "1970-01-01T00:00:02Z start etcd") ||
		!strings.HasSuffix(lines[5], "FAILED: no answer") {
		t.Errorf("got %q", lines)
	}
}

// table returns what print writes, with one space between cells.
func table(t *testing.T, print func(io.Writer)) string {
	t.Helper()
	var out bytes.Buffer
	must.NoError(t, output.Table.Print(&out, "", nil, print))
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(out.String())) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}
