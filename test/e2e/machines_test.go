//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// laptop is a user of this machine who is not root and cannot use its Docker.
type laptop struct{ dir string }

// nobody is a user ID that owns nothing else.
const nobody = 65534

func newLaptop(t *testing.T) laptop {
	t.Helper()
	l := laptop{filepath.Join(t.TempDir(), "home")}
	must.NoError(t, os.MkdirAll(filepath.Join(l.dir, ".ssh"), 0o700))
	for dir := l.dir; dir != os.TempDir(); dir = filepath.Dir(dir) {
		must.NoError(t, os.Chmod(dir, 0o755))
	}
	script := `cp "$1" "$2" "$3/" && ssh-keygen -q -t ed25519 -N '' -f "$3/.ssh/id_ed25519" && chown -R "$4" "$3"`
	_, err := host.Command{Args: []string{
		"sh", "-ec", script, "sh", hosts.Built.Binary, hosts.Built.Bundle, l.dir, fmt.Sprint(nobody),
	}}.Run(t.Context())
	must.NoError(t, err)
	must.NoError(t, os.Rename(filepath.Join(l.dir, filepath.Base(hosts.Built.Bundle)), filepath.Join(l.dir, "kube.tar.zst")))
	return l
}

// Try runs a script as the user.
func (l laptop) Try(ctx context.Context, script string) (string, error) {
	out, err := host.Command{
		Args: []string{
			"setpriv", "--reuid", fmt.Sprint(nobody), "--regid", fmt.Sprint(nobody), "--clear-groups",
			"bash", "-ec", script,
		},
		Env: []string{
			"HOME=" + l.dir, "USER=nobody", "PATH=" + l.dir + ":" + os.Getenv("PATH"),
			"KUBE_BOOTSTRAP_CONFIG=" + l.dir + "/lab.yaml", "KUBECONFIG=" + l.dir + "/kubeconfig", "DOCKER_HOST=",
		},
		Dir: l.dir,
	}.Run(ctx)
	return strings.TrimSpace(string(out)), err
}

func (l laptop) sh(t *testing.T, script string) string {
	t.Helper()
	start := time.Now()
	out, err := l.Try(t.Context(), script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	t.Logf("%s: %s", script, time.Since(start).Round(time.Second/10))
	return out
}

// fails expects a command to end with an exit code, and its errors to contain each text.
func (l laptop) fails(t *testing.T, script string, code int, texts ...string) {
	t.Helper()
	out, err := l.Try(t.Context(), fmt.Sprintf("(%s) >out 2>&1 || code=$?; cat out; [ \"$code\" = %d ]", script, code))
	if err != nil {
		t.Errorf("%s: %v, want exit code %d:\n%s", script, err, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%s does not say %q:\n%s", script, text, out)
		}
	}
}

// write writes the configuration file. The worker is behind the control plane, and its user is not root.
func (l laptop) write(t *testing.T, control, worker hosts.Machine, label, more string) {
	t.Helper()
	must.NoError(t, os.WriteFile(filepath.Join(l.dir, "lab.yaml"), fmt.Appendf(nil, `apiVersion: kube-bootstrap.dev/v1alpha1
kind: Cluster
name: lab
ssh: {user: root}
nodes:
- {role: control-plane, name: a, address: %[1]s}
- {role: worker, name: b, address: %[2]s, labels: {disk: %[3]s}, ssh: {user: admin, proxyJump: root@%[1]s}}
%[4]s`, control.IP, worker.IP, label, more), 0o644))
}

// allow lets the user of the laptop in, as root and as a user with sudo.
func (l laptop) allow(t *testing.T, m hosts.Machine) {
	t.Helper()
	key := strings.TrimSpace(string(must.Read(t, filepath.Join(l.dir, ".ssh/id_ed25519.pub"))))
	m.Sh(t, fmt.Sprintf(`useradd -m -s /bin/bash admin && echo 'admin ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/admin
for home in /root /home/admin; do mkdir -p $home/.ssh && echo '%s' >$home/.ssh/authorized_keys; done
chown -R admin /home/admin && rm /usr/local/bin/kube-bootstrap && hostnamectl --version >/dev/null
until ss -ltn | grep -q :22; do sleep 0.1; done`, key))
}

// unchanged is what a run may not touch that changes nothing.
const unchanged = `find /etc /usr/local /var/lib/kube-bootstrap /var/lib/kubelet/config* -type f -printf '%p %T@ %i\n' | sort
docker ps --format '{{.ID}} {{.Names}}' | sort; pidof dockerd containerd kubelet flanneld etcd kube-apiserver`

// TestMachines makes two machines a cluster over SSH as docs/machines.md says.
func TestMachines(t *testing.T) {
	l := newLaptop(t)
	made := hosts.New(t, "ssh", "10.139.9.0/24", "e2e-lab-a", "e2e-lab-b")
	control, worker := made[0], made[1]
	for _, m := range made {
		l.allow(t, m)
	}
	worlds := []string{control.SettledWorld(t), worker.SettledWorld(t)}
	t.Run("problems of all machines at once", func(t *testing.T) {
		l.write(t, control, worker, "ssd", "- {role: worker, name: c, address: "+control.IP+", ssh: {port: 2222}}\n")
		l.fails(t, "kube-bootstrap cluster up", 3, "known_hosts has no key of "+control.IP, "--accept-new-host-keys")
		for i, m := range made {
			if diff := hosttest.Diff(worlds[i], m.SettledWorld(t)); len(diff) > 0 {
				t.Errorf("%s has changed:\n%s", m.Name, strings.Join(diff, "\n"))
			}
		}
	})
	l.write(t, control, worker, "ssd", "")
	l.sh(t, "kube-bootstrap cluster up --accept-new-host-keys --bundle kube.tar.zst")
	clusters.Ready(t, control, 2)
	t.Run("a second run touches nothing", func(t *testing.T) {
		before := control.Sh(t, unchanged) + worker.Sh(t, unchanged)
		l.sh(t, "kube-bootstrap cluster up --bundle kube.tar.zst")
		if diff := hosttest.Diff(before, control.Sh(t, unchanged)+worker.Sh(t, unchanged)); len(diff) > 0 {
			t.Error(strings.Join(diff, "\n"))
		}
	})
	t.Run("a changed label", func(t *testing.T) {
		l.write(t, control, worker, "hdd", "")
		l.sh(t, "kube-bootstrap cluster up")
		if got := l.sh(t, "kube-bootstrap cluster kubectl get nodes -l disk=hdd -o name"); got != "node/b" {
			t.Errorf("the nodes with the label are %q", got)
		}
	})
	t.Run("commands", func(t *testing.T) { l.commands(t, control, worker) })
	t.Run("a machine that is off", func(t *testing.T) {
		worker.Sh(t, "systemctl stop ssh.socket ssh.service; pkill -f sshd-session || true")
		l.fails(t, "kube-bootstrap cluster up", 6, "machine b")
		l.sh(t, "kube-bootstrap cluster kubectl get nodes")
		worker.Sh(t, "systemctl start ssh.service")
		l.sh(t, "kube-bootstrap cluster up")
	})
	l.sh(t, "kube-bootstrap cluster clean --yes")
	for i, m := range made {
		if diff := hosttest.Diff(worlds[i], m.SettledWorld(t)); len(diff) > 0 {
			t.Errorf("%s is not as before:\n%s", m.Name, strings.Join(diff, "\n"))
		}
	}
}

// commands does what users do with a cluster of machines.
func (l laptop) commands(t *testing.T, control, worker hosts.Machine) {
	for script, want := range map[string]string{
		"kube-bootstrap cluster status":                                  "b",
		"kube-bootstrap cluster list":                                    "lab",
		"kube-bootstrap node list":                                       worker.IP,
		"kube-bootstrap node status b":                                   "",
		"kube-bootstrap node ip b":                                       worker.IP,
		"kube-bootstrap node ssh b -- 'id -un | tr a-z A-Z'":             "ROOT",
		"kube-bootstrap cluster kubectl get nodes":                       "Ready",
		"echo text >file; kube-bootstrap node scp file b:/tmp/from-user": "",
		"kube-bootstrap cluster kubeconfig":                              control.IP,
	} {
		if out := l.sh(t, script); !strings.Contains(out, want) {
			t.Errorf("%s does not say %q:\n%s", script, want, out)
		}
	}
	worker.Sh(t, "[ \"$(cat /tmp/from-user)\" = text ] && rm /tmp/from-user")
	l.fails(t, "kube-bootstrap node stop b", 3, "machines")
	l.fails(t, "kube-bootstrap cluster snapshot save x", 3, "machines")
	l.sh(t, "kube-bootstrap cluster dump there && ls there && ! grep -rl 'PRIVATE KEY' there")
}
