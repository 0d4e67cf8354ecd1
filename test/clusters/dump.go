package clusters

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// Dumps writes a dump of a machine into /root/dump, and looks for its main files and
// for private keys.
func Dumps(t *testing.T, m hosts.Machine, more ...string) {
	t.Helper()
	if out := m.Sh(t, "kube-bootstrap dump /root/dump"); out != "/root/dump" {
		t.Errorf("%s: dump prints %q", m.Name, out)
	}
	files := append(more, "status.txt", "status.json", "settings.yaml", "version.txt", "network.txt", "iptables.txt",
		"state/role", "runs/*.log",
		"logs/kube-bootstrap-agent.log", "docker/info.txt", "docker/containers/kubelet.log",
		"docker-bootstrap/containers/flannel.log")
	out := m.Sh(t, `cd /root/dump && for file in `+strings.Join(files, " ")+`; do [ -s $file ] || echo no $file; done
		grep -rl 'PRIVATE KEY' . ; find . -perm /077`)
	if out != "" {
		t.Errorf("%s: a dump with\n%s", m.Name, out)
	}
	t.Logf("%s: not in its dump: %s", m.Name, m.Sh(t, "cat /root/dump/errors.txt 2>/dev/null; true"))
}
