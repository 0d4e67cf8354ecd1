//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// TestControlPlanes makes a cluster of three control planes and a worker, and takes a control
// plane from it: by force, and in good order.
func TestControlPlanes(t *testing.T) {
	c := clusters.NewControlPlanes(t)
	hosts.Owned(t, c.Third)
	before := c.Third.SettledWorld(t)
	c.Join(t)
	t.Run("a second run touches nothing", func(t *testing.T) {
		was := c.Second.Steady(t)
		c.Second.Sh(t, "kube-bootstrap master")
		if is := c.Second.Running(t); is != was {
			t.Errorf("a second run restarted something:\n%s\nthen\n%s", was, is)
		}
	})
	t.Run("one of three dies", func(t *testing.T) { clusters.Survive(t, c.First, c.Second, c.Third, c.Worker) })
	clusters.Ready(t, c.First, 4)
	t.Run("turndown of one of three", func(t *testing.T) {
		elect(t, c.Third, c.First, c.Second, c.Third)
		since := c.Third.Sh(t, "date +%s")
		// The others do not answer a host that has left.
		if out := clusters.KillIn(t, c.Third, "kube-bootstrap turndown --yes",
			"start the kubelet"); out != "137 start the kubelet" {
			t.Errorf("killed after it has left: %s", out)
		}
		deposed := wasDeposed(t, c.Third, since)
		c.Third.Sh(t, "kube-bootstrap turndown --yes")
		const transferred = "docker -H unix:///run/docker-bootstrap.sock logs etcd --since %s 2>&1 | " +
			"grep -c 'received MsgTimeoutNow' || true"
		if !deposed && c.First.Sh(t, fmt.Sprintf(transferred, since)) == "0" &&
			c.Second.Sh(t, fmt.Sprintf(transferred, since)) == "0" {
			t.Error("the leader of etcd left without a transfer to another member")
		}
		c.Third.SameWorld(t, "master --join, then turndown,", before)
		clusters.Voters(t, c.First, 2)
		if nodes := c.First.Kubectl(t, "get nodes -o name"); strings.Contains(nodes, c.Third.Name) {
			t.Errorf("it is still a node:\n%s", nodes)
		}
		clusters.Ready(t, c.Second, 3)
	})
	t.Run("a compromised worker", func(t *testing.T) { compromised(t, c.First, c.Worker) })
}

// elect makes the etcd member of one the leader.
func elect(t *testing.T, one hosts.Machine, all ...hosts.Machine) {
	t.Helper()
	const admin = "apiserver-etcd-client"
	var clients []*clientv3.Client
	for _, m := range all {
		clients = append(clients, clusters.EtcdClient(t, m, admin))
	}
	own := clusters.EtcdClient(t, one, admin)
	wait.Until(t, time.Minute, one.Name+" leads etcd", func() error { return leads(t, own, one, clients) })
}

// leads asks the leader, which may change meanwhile, to hand over, unless it is this member.
func leads(t *testing.T, own *clientv3.Client, one hosts.Machine, clients []*clientv3.Client) error {
	asked, err := own.Status(t.Context(), "https://"+one.IP+":"+clusters.EtcdPort)
	if err != nil || asked.Leader == asked.Header.MemberId {
		return err
	}
	for _, client := range clients {
		if _, err = client.MoveLeader(t.Context(), asked.Header.MemberId); err == nil {
			return nil
		}
	}
	return err
}

// wasDeposed reports whether the other members elected another leader before this member left. On
// a busy machine, they may miss its heartbeats. Then this member has no leadership to transfer.
func wasDeposed(t *testing.T, m hosts.Machine, since string) bool {
	t.Helper()
	out, err := m.Try(t.Context(), "docker -H unix:///run/docker-bootstrap.sock logs etcd --since "+since+
		" 2>&1 | awk '/leadership transfer starting|ConfChangeRemoveNode/ {exit} /became follower/ {print; exit}'")
	if out != "" {
		t.Logf("%s was no leader any more: %s", m.Name, out)
	}
	return err == nil && out != ""
}
