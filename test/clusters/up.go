// Package clusters makes clusters of test hosts, and takes them through what every cluster must stand.
package clusters

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// Up makes a cluster of the two machines.
func Up(t *testing.T, master, worker hosts.Machine, flags string) {
	t.Helper()
	UpFrom(t, hosts.Bundle, master, worker, flags)
}

// UpFrom is up with another bundle.
func UpFrom(t *testing.T, bundle string, master, worker hosts.Machine, flags string) {
	t.Helper()
	start := time.Now()
	master.Sh(t, "kube-bootstrap master --bundle "+bundle+" "+flags)
	t.Logf("master: %s", time.Since(start).Round(100*time.Millisecond))
	start = time.Now()
	worker.Sh(t, JoinCommand(t, master)+" --bundle "+bundle)
	t.Logf("worker: %s", time.Since(start).Round(100*time.Millisecond))
	for _, m := range []hosts.Machine{master, worker} {
		hosts.ForPods(t, m)
		hosts.Reloaded(t, m)
	}
}

// JoinCommand is what the master tells to type on a worker.
func JoinCommand(t *testing.T, master hosts.Machine) string {
	t.Helper()
	return WorkerCommand(t, master.Sh(t, "kube-bootstrap token create"))
}

// WorkerCommand finds that command in what token create printed.
func WorkerCommand(t *testing.T, printed string) string {
	t.Helper()
	for line := range strings.Lines(printed) {
		if strings.Contains(line, "kube-bootstrap worker") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("token create prints no command to join:\n%s", printed)
	return ""
}

// Down takes the clusters back, worker first.
func Down(t *testing.T, all ...hosts.Machine) {
	t.Helper()
	for _, m := range all {
		start := time.Now()
		m.Sh(t, "kube-bootstrap turndown --yes")
		t.Logf("turndown of %s: %s", m.Name, time.Since(start).Round(100*time.Millisecond))
		hosts.Reloaded(t, m)
	}
}

// Again runs both verbs a second time.
func Again(t *testing.T, made ...hosts.Machine) {
	for i, verb := range []string{"master", "worker"} {
		was := made[i].Steady(t)
		made[i].Sh(t, "kube-bootstrap "+verb+" --bundle "+hosts.Bundle)
		if is := made[i].Running(t); is != was {
			t.Errorf("%s: a second run restarted something:\n%s\nthen\n%s", made[i].Name, was, is)
		}
	}
}

// Settled leaves of the containers only the owner's, all of which run.
const Settled = "docker rm -f probe >/dev/null 2>&1; docker start owner-once >/dev/null"
