//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// controlPlanes is a cluster of three control planes and a worker on bare hosts.
type controlPlanes struct{ first, second, third, worker machine }

func newControlPlanes(t *testing.T) controlPlanes {
	t.Helper()
	made := hosts(t, "docker-28.5", "10.193.8.0/24", "e2e-m1", "e2e-m2", "e2e-m3", "e2e-m4")
	return controlPlanes{made[0], made[1], made[2], made[3]}
}

// join makes the cluster of the bare hosts.
func (c controlPlanes) join(t *testing.T) {
	c.first.sh(t, "kube-bootstrap master --addons metrics-server --bundle "+bundle) // an addon that depends on the number of control planes
	t.Run("join", func(t *testing.T) { joinControlPlanes(t, c.first, c.second, c.third) })
	t.Run("a worker joins through any", func(t *testing.T) { c.worker.sh(t, joinCommand(t, c.second)) })
	ready(t, c.first, 4)
}

// ready waits until all nodes and pods are ready.
func ready(t *testing.T, on machine, nodes int) {
	t.Helper()
	since := time.Now().UTC()
	eventually(t, 3*time.Minute, "nodes and pods", func() error { return allReady(t, on, since, nodes) })
}

// TestControlPlanes makes a cluster of three control planes and a worker, and takes a control
// plane from it: by force, and in good order.
func TestControlPlanes(t *testing.T) {
	c := newControlPlanes(t)
	owned(t, c.third)
	before := c.third.settledWorld(t)
	c.join(t)
	t.Run("a second run touches nothing", func(t *testing.T) {
		was := c.second.steady(t)
		c.second.sh(t, "kube-bootstrap master")
		if is := c.second.running(t); is != was {
			t.Errorf("a second run restarted something:\n%s\nthen\n%s", was, is)
		}
	})
	t.Run("one of three dies", func(t *testing.T) { survive(t, c.first, c.second, c.third, c.worker) })
	ready(t, c.first, 4)
	t.Run("turndown of one of three", func(t *testing.T) {
		elect(t, c.third, c.first, c.second, c.third)
		since := c.third.sh(t, "date +%s")
		// The others do not answer a host that has left.
		if out := killIn(t, c.third, "kube-bootstrap turndown --yes", "start the kubelet"); out != "137 start the kubelet" {
			t.Errorf("killed after it has left: %s", out)
		}
		deposed := wasDeposed(t, c.third, since)
		c.third.sh(t, "kube-bootstrap turndown --yes")
		const transferred = "docker -H unix:///run/docker-bootstrap.sock logs etcd --since %s 2>&1 | grep -c 'received MsgTimeoutNow' || true"
		if !deposed && c.first.sh(t, fmt.Sprintf(transferred, since)) == "0" && c.second.sh(t, fmt.Sprintf(transferred, since)) == "0" {
			t.Error("the leader of etcd left without a transfer to another member")
		}
		c.third.sameWorld(t, "master --join, then turndown,", before)
		voters(t, c.first, 2)
		if nodes := c.first.kubectl(t, "get nodes -o name"); strings.Contains(nodes, c.third.name) {
			t.Errorf("it is still a node:\n%s", nodes)
		}
		ready(t, c.second, 3)
	})
	t.Run("a compromised worker", func(t *testing.T) { compromised(t, c.first, c.worker) })
}

// joinControlPlanes has two hosts join side by side; one of them is killed in
// the steps that others would notice, and runs again.
func joinControlPlanes(t *testing.T, first, second, third machine) {
	line := newToken(t, first, "--control-plane", "--reusable").controlPlaneLine()
	var all sync.WaitGroup
	var err error
	all.Go(func() { _, err = second.try(t.Context(), line) })
	for _, step := range []string{"announce this control plane", "join etcd", "write the static pods of the scheduler and the controller manager"} {
		if out := killIn(t, third, line, step); out != "137 "+step {
			t.Errorf("killed in %q: %s", step, out)
		}
	}
	third.sh(t, line)
	if all.Wait(); err != nil {
		t.Fatal(err)
	}
	voters(t, first, 3)
	const otherEtcd = "grep -q -e --etcd-servers=.*,https://127.0.0.1:6441 /etc/kubernetes/manifests/kube-apiserver.yaml"
	soon(t, time.Minute, "the first API server to use another etcd if its own is down", first, otherEtcd)
	for _, m := range []machine{first, second, third} {
		soon(t, time.Minute, "status of "+m.name, m, "kube-bootstrap status")
		if leads := m.sh(t, "cat /etc/kubernetes/manifests/kube-*.yaml | grep -c leader-elect=true || true"); leads != "2" {
			t.Errorf("%s: %s of controller manager and scheduler share their work", m.name, leads)
		}
	}
}

// controlPlaneLine is the command that makes a host a further control plane, as `token create`
// prints it: without a bundle.
func (j joinToken) controlPlaneLine() string {
	return fmt.Sprintf("KUBE_BOOTSTRAP_TOKEN=%s KUBE_BOOTSTRAP_CERTIFICATE_KEY=%s kube-bootstrap master --join --master-ip %s --ca-cert-hash %s",
		j.Token, j.CertificateKey, j.MasterIP, j.CACertHash)
}

// killIn kills a run as soon as that step starts, wherever else it would be.
func killIn(t *testing.T, m machine, run, step string) string {
	t.Helper()
	return m.sh(t, `rm -f /run/progress; mkfifo /run/progress
`+run+` --progress json 2>/run/progress >/dev/null & pid=$!
while read -r line; do
	echo "$line" >>/run/progress.log
	case $line in *'"step":"`+step+`"'*'"kind":"started"'*|*'"kind":"started"'*'"step":"`+step+`"'*) kill -KILL $pid; cat >>/run/progress.log; break;; esac
done </run/progress
wait $pid; code=$?; rm -f /run/progress /run/progress.log; echo "$code `+step+`"`)
}

type etcdMember struct {
	Name                     string
	Learner, Leader, Healthy bool
	Revision                 int64
}

func members(t *testing.T, m machine) ([]etcdMember, error) {
	t.Helper()
	var status struct{ Etcd []etcdMember }
	out, err := m.try(t.Context(), "kube-bootstrap status -o json || [ $? = 5 ]")
	if err == nil {
		err = json.Unmarshal([]byte(out), &status)
	}
	return status.Etcd, err
}

// voters expects n members of etcd, all with a vote and healthy, that have seen
// the same.
func voters(t *testing.T, m machine, n int) {
	t.Helper()
	eventually(t, time.Minute, fmt.Sprintf("%d members of etcd", n), func() error {
		all, err := members(t, m)
		if err != nil {
			return err
		}
		for _, member := range all {
			// A revision may pass between two questions.
			if member.Learner || !member.Healthy || all[0].Revision-member.Revision > 20 || member.Revision-all[0].Revision > 20 {
				return fmt.Errorf("%+v", all)
			}
		}
		if len(all) != n {
			return fmt.Errorf("%+v", all)
		}
		return nil
	})
}

// elect makes the etcd member of one the leader.
func elect(t *testing.T, one machine, all ...machine) {
	t.Helper()
	const admin = "apiserver-etcd-client"
	var clients []*clientv3.Client
	for _, m := range all {
		clients = append(clients, etcdClient(t, m, admin))
	}
	own := etcdClient(t, one, admin)
	eventually(t, time.Minute, one.name+" leads etcd", func() error { return leads(t, own, one, clients) })
}

// leads asks the leader, which may change meanwhile, to hand over, unless it is this member.
func leads(t *testing.T, own *clientv3.Client, one machine, clients []*clientv3.Client) error {
	asked, err := own.Status(t.Context(), "https://"+one.ip+":"+etcdPort)
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
func wasDeposed(t *testing.T, m machine, since string) bool {
	t.Helper()
	out, err := m.try(t.Context(), "docker -H unix:///run/docker-bootstrap.sock logs etcd --since "+since+
		" 2>&1 | awk '/leadership transfer starting|ConfChangeRemoveNode/ {exit} /became follower/ {print; exit}'")
	if out != "" {
		t.Logf("%s was no leader any more: %s", m.name, out)
	}
	return err == nil && out != ""
}

// survive kills one control plane without a word. The others, and the worker,
// go on by their balancers; what is written meanwhile reaches it later.
func survive(t *testing.T, dead machine, left ...machine) {
	other := left[0]
	power(t, "kill", dead)
	for _, m := range left {
		eventually(t, time.Minute, "the API from "+m.name, func() error { return asksAPI(t, m) })
	}
	// etcd may have written what the API server did not confirm in time.
	const admin = "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf "
	soon(t, time.Minute, "a change", other, admin+"create configmap written-meanwhile --from-literal=a=b || "+admin+"get configmap written-meanwhile")
	for range 10 {
		for _, m := range left {
			if err := asksAPI(t, m); err != nil {
				t.Errorf("%s has lost the API again: %v", m.name, err)
			}
		}
	}
	power(t, "start", dead)
	eventually(t, 2*time.Minute, "its own API server", func() error {
		out, err := dead.try(t.Context(), "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf get configmap written-meanwhile -o 'jsonpath={.data.a}'")
		if err == nil && out != "b" {
			err = fmt.Errorf("got %q", out)
		}
		return err
	})
	voters(t, dead, 3)
}

// asksAPI reads the machine's own Node as its kubelet does.
func asksAPI(t *testing.T, m machine) error {
	_, err := m.try(t.Context(), "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout 30s get node "+m.name)
	return err
}

// refusedTurndown stops one of two: the other must not leave, as nobody could
// take it out of etcd.
func refusedTurndown(t *testing.T, first, second machine) {
	power(t, "stop", first)
	out := second.sh(t, "{ kube-bootstrap turndown --yes; } 2>&1; echo exit $?")
	if !strings.HasSuffix(out, "exit 3") || !strings.Contains(out, "[etcd-") || !strings.Contains(out, "--force") {
		t.Errorf("want a refusal, got:\n%s", out)
	}
	namesWhoIsDown(t, first, second)
	power(t, "start", first)
	voters(t, second, 2)
}

// namesWhoIsDown checks status without an etcd quorum: the content of etcd is
// unknown, so nothing in it counts as missing, and status must not suggest a
// run on this host.
func namesWhoIsDown(t *testing.T, off, on machine) {
	out := on.sh(t, "kube-bootstrap status || [ $? = 5 ]")
	for _, want := range []string{"UNKNOWN", "1 of 2 members answer and 2 are required; down: " + off.name, "start or repair their hosts", "[etcd-quorum]"} {
		if !strings.Contains(out, want) {
			t.Errorf("status does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "add etcd user") || strings.Contains(out, "to repair this host") {
		t.Errorf("status takes no answer for something to repair:\n%s", out)
	}
	out = on.sh(t, "{ kube-bootstrap forget "+off.name+"; } 2>&1; echo exit $?")
	if !strings.HasSuffix(out, "exit 3") || !strings.Contains(out, "down: "+off.name) {
		t.Errorf("forget does not say who is down:\n%s", out)
	}
}

func refusedForget(t *testing.T, first, second machine) {
	for name, problem := range map[string]string{second.name: "[control-plane-alive]", first.name: "[control-plane-alive]", "nobody": "[node-unknown]"} {
		out := first.sh(t, "{ kube-bootstrap forget "+name+"; } 2>&1; echo exit $?")
		if !strings.HasSuffix(out, "exit 3") || !strings.Contains(out, problem) {
			t.Errorf("forget %s: want %s, got:\n%s", name, problem, out)
		}
	}
}

// forget removes a stopped control plane from the cluster. When it starts again, the
// cluster does not know it any more, and turndown works all the same.
func forget(t *testing.T, first, third machine) {
	third.sh(t, newToken(t, first, "--control-plane").controlPlaneLine())
	voters(t, first, 3)
	power(t, "stop", third)
	soon(t, time.Minute, "forget "+third.name, first, "kube-bootstrap forget "+third.name)
	voters(t, first, 2)
	power(t, "start", third)
	third.sh(t, "until systemctl is-system-running --wait 2>/dev/null | grep -Eq 'running|degraded'; do sleep 0.1; done")
	soon(t, 3*time.Minute, "the agent of "+third.name, third, "journalctl -q -b -u kube-bootstrap-agent | grep etcd-removed")
	voters(t, first, 2)
	third.sh(t, "kube-bootstrap turndown --yes")
	voters(t, first, 2)
	// Its kubelet would have registered it again.
	if nodes := first.kubectl(t, "get nodes -o name"); strings.Contains(nodes, third.name) {
		t.Errorf("it is a node again:\n%s", nodes)
	}
}
