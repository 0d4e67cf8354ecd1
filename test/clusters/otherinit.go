package clusters

import (
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// settle makes a host without systemd what its owner has: a Docker that starts
// although nobody may raise limits here, and links numbered as they stand.
const settle = `echo 'ulimit() { command ulimit "$@" 2>/dev/null || true; }' >/etc/default/docker
update-rc.d docker defaults
service docker status >/dev/null || service docker start
for i in $(seq 600); do docker version >/dev/null 2>&1 && exit 0; sleep 0.2; done; exit 1`

// OtherInit walks through the life of a master whose init is no systemd: made, run
// again, repaired by its agent, rebooted, taken back.
func OtherInit(t *testing.T, m hosts.Machine, bundle string) {
	m.Sh(t, settle)
	m.Sh(t, "kube-bootstrap master --bundle "+bundle)
	PodsReady(t, m, 1)
	was := m.Steady(t)
	m.Sh(t, "kube-bootstrap master --bundle "+bundle)
	if is := m.Running(t); is != was {
		t.Errorf("a second run restarted something:\n%s\nthen\n%s", was, is)
	}
	AgentWorks(t, m)
	Dumps(t, m, "nodes.txt", "objects.yaml", "docker-bootstrap/containers/etcd.log")
	m.Sh(t, "rm -r /root/dump")
	subnet := m.Sh(t, "cat /var/lib/kube-bootstrap/flannel/subnet.env")
	if _, err := (host.Command{Args: []string{"docker", "restart", "-t", "60", m.Name}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole(t, m, 3*time.Minute, "everything is back after a reboot")
	if now := m.Sh(t, "cat /var/lib/kube-bootstrap/flannel/subnet.env"); now != subnet {
		t.Errorf("another subnet after a reboot: %s, then %s", subnet, now)
	}
	m.Sh(t, "kube-bootstrap turndown --yes")
	// The links of pods may stay as long as their connections, see settles.
	hosts.Soon(t, hosts.Settles/wait.Patience, "the end of the links of the pods", m,
		"[ -z \"$(ip -o link show type veth | grep -v ' eth[0-9]')\" ]")
	// A reboot between the two would change what kube-bootstrap does not manage.
	before := m.SettledWorld(t)
	m.Sh(t, "kube-bootstrap master --bundle "+bundle)
	m.Sh(t, "kube-bootstrap turndown --yes")
	m.Sh(t, "kube-bootstrap turndown --yes") // twice is harmless
	m.SameWorld(t, "master, then turndown,", before)
}
