//go:build e2e

package long

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
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

// rack is three control planes and two workers: the first worker is reached through two hops, and the
// user of the second one is not root.
const rack = `apiVersion: kube-bootstrap.dev/v1alpha1
kind: Cluster
name: rack
ssh: {user: root, acceptNewHostKeys: true}
nodes:
- {role: control-plane, name: a, address: %[1]s}
- {role: control-plane, name: b, address: %[2]s}
- {role: control-plane, name: c, address: %[3]s}
- {role: worker, name: d, address: %[4]s, ssh: {proxyJump: "root@%[1]s,root@%[2]s"}}
- {role: worker, name: e, address: %[5]s, labels: {disk: %[6]s}, ssh: {user: admin}}
`

func writeRack(t *testing.T, l laptop.User, all []hosts.Machine, disk string) {
	t.Helper()
	text := fmt.Appendf(nil, rack, all[0].IP, all[1].IP, all[2].IP, all[3].IP, all[4].IP, disk)
	must.NoError(t, os.WriteFile(filepath.Join(l.Dir, "lab.yaml"), text, 0o644))
}

// TestRack makes five machines a cluster over SSH, one of which is off at first. Then the first control
// plane is off, runs are killed at random moments, and all is removed.
func TestRack(t *testing.T) {
	l := laptop.New(t)
	all := hosts.New(t, "ssh", "10.139.11.0/24", "e2e-rack-a", "e2e-rack-b", "e2e-rack-c", "e2e-rack-d", "e2e-rack-e")
	var worlds []string
	for _, m := range all {
		l.Allow(t, m)
		hosts.Owned(t, m)
		worlds = append(worlds, m.SettledWorld(t))
	}
	writeRack(t, l, all, "ssd")
	setSSH(t, all[4], "stop")
	sent := sentTo(t, all[0])
	l.Fails(t, "kube-bootstrap cluster up --bundle kube.tar.zst", 6, "machine e")
	bundle, err := os.Stat(filepath.Join(l.Dir, "kube.tar.zst"))
	must.NoError(t, err)
	sent = sentTo(t, all[0]) - sent
	t.Logf("%d MB have left this machine, with a bundle of %d MB", sent>>20, bundle.Size()>>20)
	if most := bundle.Size() * 12 / 10; sent > most {
		t.Errorf("%d bytes have left this machine, at most %d were expected", sent, most)
	}
	setSSH(t, all[4], "start")
	rest := state(t, all[:4])
	l.Sh(t, "kube-bootstrap cluster up --bundle kube.tar.zst")
	sameState(t, rest, state(t, all[:4]), "the setup of e")
	clusters.Ready(t, all[0], 5)
	whole := state(t, all)
	l.Sh(t, "kube-bootstrap cluster up --bundle kube.tar.zst")
	sameState(t, whole, state(t, all), "a run without a difference")
	t.Run("the first control plane is off", func(t *testing.T) {
		setSSH(t, all[0], "stop")
		l.Fails(t, "kube-bootstrap cluster up", 6, "machine a")
		setSSH(t, all[0], "start")
		sameState(t, whole, state(t, all), "a run without the first control plane")
	})
	t.Run("killed runs", func(t *testing.T) { killedRuns(t, l, all) })
	l.Sh(t, "kube-bootstrap cluster clean --yes")
	for i, m := range all {
		m.SameWorld(t, "cluster clean", worlds[i])
	}
}

func setSSH(t *testing.T, m hosts.Machine, verb string) {
	t.Helper()
	m.Sh(t, "systemctl "+verb+" ssh.service; pkill -f '[s]shd-session' || true")
}

// sentTo returns the bytes that this machine has sent into the network of a host.
func sentTo(t *testing.T, m hosts.Machine) int64 {
	t.Helper()
	route := strings.Fields(hosts.Local(t, "ip", "route", "get", m.IP))
	file := "/sys/class/net/" + route[2] + "/statistics/tx_bytes"
	count, err := strconv.ParseInt(strings.TrimSpace(string(must.Read(t, file))), 10, 64)
	must.NoError(t, err)
	return count
}

// state is what a run may not touch on machines that it does not change. The agents record by themselves
// which control planes answer.
func state(t *testing.T, all []hosts.Machine) (text string) {
	t.Helper()
	for _, m := range all {
		text += m.Name + "\n" + m.Sh(t, `find /etc /usr/local /var/lib/kube-bootstrap \
	\( -path '*/etcd/member' -o -path '*/balancer' \) -prune -o -type f -printf '%p %T@ %i\n' | sort
docker ps --format '{{.ID}} {{.Names}}' | sort; pidof dockerd containerd kubelet flanneld etcd kube-apiserver`)
	}
	return text
}

func sameState(t *testing.T, before, after, what string) {
	t.Helper()
	if diff := hosttest.Diff(before, after); len(diff) > 0 {
		t.Errorf("%s has changed:\n%s", what, strings.Join(diff[:min(len(diff), 40)], "\n"))
	}
}

// rounds is the number of runs that are ended before their time.
const rounds = 60

// killedRuns ends runs that change labels at random moments. Another run completes each.
func killedRuns(t *testing.T, l laptop.User, all []hosts.Machine) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	const tokens = "/usr/local/lib/kube-bootstrap/bin/kube-bootstrap token list -o json"
	before := all[0].Sh(t, tokens)
	for _, m := range all {
		m.Sh(t, watchProcesses)
	}
	for i := range rounds {
		disk := fmt.Sprint("disk-", i)
		writeRack(t, l, all, disk)
		moment := time.Duration(100+random.IntN(4000)) * time.Millisecond
		[]func(*testing.T, laptop.User, []hosts.Machine, time.Duration){killRun, cutConnections, killRun, dropPackets}[i%4](
			t, l, all, moment)
		hosts.Soon(t, 5*time.Second, "the locks are free", l, "kube-bootstrap cluster up")
		if got := l.Sh(t, "kube-bootstrap cluster kubectl get nodes -l disk="+disk+" -o name"); got != "node/e" {
			t.Fatalf("the nodes with the label are %q", got)
		}
	}
	if after := all[0].Sh(t, tokens); after != before {
		t.Errorf("tokens before:\n%s\nafter:\n%s", before, after)
	}
	l.Sh(t, "kube-bootstrap cluster dump killed && ! grep -rlE '"+tokenPattern+"' killed")
	for _, m := range all {
		if left := m.Sh(t, leftovers); left != "" {
			t.Errorf("%s: left:\n%s", m.Name, left)
		}
	}
}

func killRun(t *testing.T, l laptop.User, _ []hosts.Machine, moment time.Duration) {
	t.Helper()
	l.Sh(t, fmt.Sprintf("timeout -s KILL %.1fs kube-bootstrap cluster up || true", moment.Seconds()))
}

// cutConnections ends all SSH sessions during a run.
func cutConnections(t *testing.T, l laptop.User, all []hosts.Machine, moment time.Duration) {
	t.Helper()
	during(t, l, func() {
		time.Sleep(moment)
		for _, m := range all {
			m.Sh(t, "pkill -KILL -f '[s]shd-session|[s]shd: ' || true")
		}
	})
}

// dropPackets lets the packets of SSH get lost for longer than a lock outlives its connection.
func dropPackets(t *testing.T, l laptop.User, all []hosts.Machine, moment time.Duration) {
	t.Helper()
	const rule = " INPUT -p tcp --dport 22 -j DROP"
	during(t, l, func() {
		time.Sleep(moment)
		for _, m := range all {
			m.Sh(t, "iptables -I"+rule)
		}
		time.Sleep(20 * time.Second)
		for _, m := range all {
			m.Sh(t, "iptables -D"+rule)
		}
	})
}

// during does something while a run goes on, which may fail.
func during(t *testing.T, l laptop.User, do func()) {
	t.Helper()
	var run sync.WaitGroup
	run.Go(func() { _, _ = l.Try(t.Context(), "kube-bootstrap cluster up") })
	do()
	run.Wait()
}

// tokenPattern is what a join token looks like.
const tokenPattern = `\<[a-z0-9]{6}\.[a-z0-9]{16}\>`

// watchProcesses looks for tokens in the list of processes until leftovers ends it.
const watchProcesses = `(while sleep 0.1; do ps -eo args | grep -E '` + tokenPattern +
	`' | grep -v grep; done >/run/seen-tokens 2>&1 & echo $! >/run/watch.pid) >/dev/null 2>&1 </dev/null`

// leftovers prints what killed runs have left on a machine.
const leftovers = `kill $(cat /run/watch.pid); cat /run/seen-tokens; rm /run/watch.pid /run/seen-tokens
ls /run/kube-bootstrap-ssh.lock 2>/dev/null; grep -rlE '` + tokenPattern + `' /tmp /var/tmp
find /usr/local/lib/kube-bootstrap -name '*.part-*'; journalctl -o cat | grep -E '` + tokenPattern + `' || true`
