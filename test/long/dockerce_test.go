//go:build e2e

package long

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
)

// hostile runs the program in the environment of an administrator who uses a proxy for downloads
// and a strict umask, logged in by a plain `su`, and has variables for other engines, clusters and
// languages.
const hostile = `mv /usr/local/bin/kube-bootstrap /usr/local/lib/kube-bootstrap &&
cat >/usr/local/bin/kube-bootstrap <<'EOF'
#!/bin/sh
umask 077
exec env -i PATH=/usr/local/bin:/usr/bin:/bin HTTPS_PROXY=http://127.0.0.2:3128 HTTP_PROXY=http://127.0.0.2:3128 \
	https_proxy=http://127.0.0.2:3128 \
	LANG=de_DE.UTF-8 LC_ALL=de_DE.UTF-8 DOCKER_HOST=tcp://127.0.0.2:1 DOCKER_CONTEXT=nowhere \
	DOCKER_CONFIG=/nowhere DOCKER_API_VERSION=1.24 \
	CONTAINERD_ADDRESS=/nowhere CONTAINERD_NAMESPACE=other NO_COLOR=1 TMPDIR=/tmp \
	${KUBE_BOOTSTRAP_TOKEN:+KUBE_BOOTSTRAP_TOKEN="$KUBE_BOOTSTRAP_TOKEN"} \
	/usr/local/lib/kube-bootstrap "$@"
EOF
chmod 755 /usr/local/bin/kube-bootstrap`

// TestDockerCE is for hosts with the packages of Docker's own repository: their config.toml has
// no version and disables CRI.
func TestDockerCE(t *testing.T) {
	made := hosts.New(t, "docker-ce", "10.136.1.0/24", "e2e-ce", "e2e-cf")
	master, worker := made[0], made[1]
	var before []string
	for _, m := range made {
		hosts.Owned(t, m)
		m.Sh(t, hostile)
		before = append(before, m.World(t))
	}
	t.Run("an imported file wins", func(t *testing.T) { importedConfig(t, master) })
	t.Run("a worker without settings", func(t *testing.T) {
		code, says := worker.Ask(t, "", "preflight worker --bundle $B", hosts.Bundle)
		if code != "3" || strings.Count(says, "PROBLEM") != 1 || !strings.Contains(says, "masterIP: Required value") ||
			!strings.Contains(says, "token: Required value") {
			t.Errorf("exit code %s:\n%s", code, says)
		}
	})
	clusters.Up(t, master, worker, "")
	clusters.Again(t, made...)
	traffic.Packets(t, master, made...)
	for _, m := range made {
		m.Sh(t, "kube-bootstrap status")
		modes(t, m)
		m.Sh(t, clusters.Settled)
	}
	master.Sh(t, "kube-bootstrap kubectl get nodes")
	clusters.Down(t, worker, master)
	for i, m := range made {
		m.SameWorld(t, "master or worker, then turndown,", before[i])
	}
}

// importedConfig expects one problem, before anything is changed, if another file takes back what
// kube-bootstrap would write.
func importedConfig(t *testing.T, m hosts.Machine) {
	m.Sh(t, `cp /etc/containerd/config.toml /tmp/config.toml && mkdir -p /etc/containerd/other.d
printf 'version = 3\n[plugins."io.containerd.cri.v1.images".pinned_images]\nsandbox = "example.com/pause:1"\n' \
	>/etc/containerd/other.d/gpu.toml
printf 'version = 3\nimports = ["other.d/*.toml"]\n' >/etc/containerd/config.toml`)
	defer m.Sh(t, "mv /tmp/config.toml /etc/containerd/config.toml && rm -r /etc/containerd/other.d")
	code, says := m.Ask(t, "", hosts.AsMaster, hosts.Bundle)
	if names := hosts.ProblemNames(says); code != "3" || len(names) != 1 || names[0] != "containerd-config" ||
		!strings.Contains(says, "sandbox = registry.k8s.io/pause") {
		t.Errorf("exit code %s:\n%s", code, says)
	}
}

// modes expects that what kube-bootstrap makes does not follow the umask of its user. containerd
// makes /etc/cni/net.d, with the mode 0700.
func modes(t *testing.T, m hosts.Machine) {
	t.Helper()
	got := m.Sh(t, "stat -c '%a %n' /etc/kubernetes /opt/cni /opt/cni/bin /opt/cni/bin/bridge /var/log/pods "+
		"/var/lib/kube-bootstrap")
	want := "755 /etc/kubernetes\n755 /opt/cni\n755 /opt/cni/bin\n755 /opt/cni/bin/bridge\n755 /var/log/pods\n" +
		"700 /var/lib/kube-bootstrap"
	if got != want {
		t.Errorf("%s has the modes\n%s\nwant\n%s", m.Name, got, want)
	}
	if open := m.Sh(t, "find /etc/kubernetes /var/lib/kube-bootstrap -name '*.key' -perm /077"); open != "" {
		t.Errorf("%s: others can read %s", m.Name, open)
	}
}
