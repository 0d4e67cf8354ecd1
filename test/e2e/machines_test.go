//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/laptop"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// writeLab writes the configuration file. The worker is behind the control plane, and its user is not root.
func writeLab(t *testing.T, l laptop.User, control, worker hosts.Machine, label, more string) {
	t.Helper()
	must.NoError(t, os.WriteFile(filepath.Join(l.Dir, "lab.yaml"), fmt.Appendf(nil, lab, control.IP, worker.IP,
		label, more), 0o644))
}

const lab = `apiVersion: kube-bootstrap.dev/v1alpha1
kind: Cluster
name: lab
ssh: {user: root}
nodes:
- {role: control-plane, name: a, address: %[1]s}
- {role: worker, name: b, address: %[2]s, labels: {disk: %[3]s}, ssh: {user: admin, proxyJump: root@%[1]s}}
%[4]s`

// unchanged is what a run may not touch that changes nothing.
const unchanged = `find /etc /usr/local /var/lib/kube-bootstrap /var/lib/kubelet/config* \
	-path '*/etcd/member' -prune -o -type f -printf '%p %T@ %i\n' | sort
docker ps --format '{{.ID}} {{.Names}}' | sort; pidof dockerd containerd kubelet flanneld etcd kube-apiserver`

// TestMachines makes two machines a cluster over SSH as docs/machines.md says. They have no default route,
// and the laptop reaches nothing but them.
func TestMachines(t *testing.T) {
	l := laptop.New(t)
	made := hosts.New(t, "ssh", "10.139.9.0/24", "e2e-lab-a", "e2e-lab-b")
	control, worker := made[0], made[1]
	for _, m := range made {
		l.Allow(t, m)
		hosts.Owned(t, m)
		m.Sh(t, "ip route del default")
	}
	l = l.In(t, control, "10.139.9.200/24")
	worlds := []string{control.SettledWorld(t), worker.SettledWorld(t)}
	t.Run("problems of all machines at once", func(t *testing.T) {
		off := "- {role: worker, name: c, address: " + control.IP + ", ssh: {port: 2222}}\n"
		writeLab(t, l, control, worker, "ssd", off)
		l.Fails(t, "kube-bootstrap cluster up", 3, "known_hosts has no key of "+control.IP, "--accept-new-host-keys")
		for i, m := range made {
			m.SameWorld(t, "a run with problems", worlds[i])
		}
	})
	writeLab(t, l, control, worker, "ssd", "")
	l.Sh(t, "kube-bootstrap cluster up --accept-new-host-keys --bundle kube.tar.zst")
	clusters.Ready(t, control, 2)
	t.Run("a second run touches nothing", func(t *testing.T) {
		before := control.Sh(t, unchanged) + worker.Sh(t, unchanged)
		l.Sh(t, "kube-bootstrap cluster up --bundle kube.tar.zst")
		if diff := hosttest.Diff(before, control.Sh(t, unchanged)+worker.Sh(t, unchanged)); len(diff) > 0 {
			t.Error(strings.Join(diff, "\n"))
		}
	})
	t.Run("a changed label", func(t *testing.T) {
		writeLab(t, l, control, worker, "hdd", "")
		l.Sh(t, "kube-bootstrap cluster up")
		if got := l.Sh(t, "kube-bootstrap cluster kubectl get nodes -l disk=hdd -o name"); got != "node/b" {
			t.Errorf("the nodes with the label are %q", got)
		}
	})
	t.Run("a killed run leaves no token", func(t *testing.T) {
		writeLab(t, l, control, worker, "nvme", "")
		killWithToken(t, l, control)
		l.Sh(t, "kube-bootstrap cluster up")
	})
	t.Run("commands", func(t *testing.T) { labCommands(t, l, control, worker) })
	t.Run("a machine that is off", func(t *testing.T) {
		worker.Sh(t, "systemctl stop ssh.socket ssh.service; pkill -f '[s]shd-session' || true")
		l.Fails(t, "kube-bootstrap cluster up", 6, "machine b")
		l.Sh(t, "kube-bootstrap cluster kubectl get nodes")
		worker.Sh(t, "systemctl start ssh.service")
		l.Sh(t, "kube-bootstrap cluster up")
	})
	l.Sh(t, "kube-bootstrap cluster clean --yes")
	for i, m := range made {
		m.SameWorld(t, "cluster clean", worlds[i])
	}
}

// labCommands does what users do with a cluster of machines.
func labCommands(t *testing.T, l laptop.User, control, worker hosts.Machine) {
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
		if out := l.Sh(t, script); !strings.Contains(out, want) {
			t.Errorf("%s does not say %q:\n%s", script, want, out)
		}
	}
	worker.Sh(t, "[ \"$(cat /tmp/from-user)\" = text ] && rm /tmp/from-user")
	loadWithoutCommands(t, l, control, worker)
	l.Fails(t, "kube-bootstrap node stop b", 3, "machines")
	l.Fails(t, "kube-bootstrap cluster snapshot save x", 3, "machines")
	l.Sh(t, "kube-bootstrap cluster dump there && ls there && ! grep -rl 'PRIVATE KEY' there")
}

// loadWithoutCommands copies an image between machines that have neither the docker command nor ctr.
func loadWithoutCommands(t *testing.T, l laptop.User, control, worker hosts.Machine) {
	t.Helper()
	const image, programs = "my/app:1", `for p in docker ctr; do p=/usr/bin/$p; `
	control.Sh(t, "docker tag $(docker image ls -q | head -1) "+image)
	for _, m := range []hosts.Machine{control, worker} {
		m.Sh(t, programs+`[ ! -e $p ] || mv $p $p.away; done`)
	}
	l.Fails(t, "kube-bootstrap cluster load-image my/app:2 --from a", 3, "node a has no image my/app:2")
	l.Sh(t, "kube-bootstrap cluster load-image --from a "+image)
	for _, m := range []hosts.Machine{control, worker} {
		m.Sh(t, programs+`[ ! -e $p.away ] || mv $p.away $p; done`)
		m.Sh(t, "docker image rm "+image+" && ctr -n k8s.io images ls -q | grep "+image)
	}
}

// killWithToken kills a run that has created a token for the worker.
func killWithToken(t *testing.T, l laptop.User, control hosts.Machine) {
	t.Helper()
	const tokens = "/usr/local/lib/kube-bootstrap/bin/kube-bootstrap token list -o json"
	var run sync.WaitGroup
	run.Go(func() { _, _ = l.Try(t.Context(), "kube-bootstrap cluster up") })
	hosts.Soon(t, time.Minute, "a token", control, tokens+` | grep '"node": "b"'`)
	l.Sh(t, "pkill -KILL -u 65534 -f '[k]ube-bootstrap cluster up'")
	run.Wait()
	hosts.Soon(t, 20*time.Second, "no token", control, "! "+tokens+` | grep '"node": "b"'`)
}
