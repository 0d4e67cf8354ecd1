//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// settle makes a host without systemd what its owner has: a Docker that starts
// although nobody may raise limits here, and links numbered as they stand.
const settle = `echo 'ulimit() { command ulimit "$@" 2>/dev/null || true; }' >/etc/default/docker
update-rc.d docker defaults
service docker status >/dev/null || service docker start
for i in $(seq 600); do docker version >/dev/null 2>&1 && exit 0; sleep 0.2; done; exit 1`

// otherInit walks through the life of a master whose init is no systemd: made, run
// again, repaired by its agent, rebooted, taken back.
func otherInit(t *testing.T, m machine, bundle string) {
	m.sh(t, settle)
	m.sh(t, "kube-bootstrap master --bundle "+bundle)
	podsReady(t, m, 1)
	was := m.steady(t)
	m.sh(t, "kube-bootstrap master --bundle "+bundle)
	if is := m.running(t); is != was {
		t.Errorf("a second run restarted something:\n%s\nthen\n%s", was, is)
	}
	agentWorks(t, m)
	dumps(t, m, "nodes.txt", "objects.yaml", "docker-bootstrap/containers/etcd.log")
	m.sh(t, "rm -r /root/dump")
	subnet := m.sh(t, "cat /var/lib/kube-bootstrap/flannel/subnet.env")
	if _, err := (host.Command{Args: []string{"docker", "restart", "-t", "60", m.name}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole(t, m, 3*time.Minute, "everything is back after a reboot")
	if now := m.sh(t, "cat /var/lib/kube-bootstrap/flannel/subnet.env"); now != subnet {
		t.Errorf("another subnet after a reboot: %s, then %s", subnet, now)
	}
	m.sh(t, "kube-bootstrap turndown --yes")
	// The links of pods may stay as long as their connections, see settles.
	soon(t, settles/patience, "the end of the links of the pods", m, "[ -z \"$(ip -o link show type veth | grep -v ' eth[0-9]')\" ]")
	// A reboot between the two would change what kube-bootstrap does not manage.
	before := m.settledWorld(t)
	m.sh(t, "kube-bootstrap master --bundle "+bundle)
	m.sh(t, "kube-bootstrap turndown --yes")
	m.sh(t, "kube-bootstrap turndown --yes") // twice is harmless
	m.sameWorld(t, "master, then turndown,", before)
}

// missing are the lines of a status that name what is not up to date.
func missing(status string) string {
	var lines []string
	for line := range strings.Lines(status) {
		if !strings.HasPrefix(line, "ok ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
