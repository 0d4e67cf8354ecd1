//go:build e2e

package long

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// usersDocker prepares a Docker as people have it: users of containers are remapped, the default
// runtime writes a log, packets are small, and new networks lie inside of flannel's.
const usersDocker = `
mkdir -p /etc/docker
printf '#!/bin/sh\necho "$@" >>/var/log/fake-runtime.log\nexec runc "$@"\n' >/usr/local/bin/fake-runtime
chmod 755 /usr/local/bin/fake-runtime
cat >/etc/docker/daemon.json <<'END'
{"userns-remap": "default", "mtu": 1300, "default-runtime": "fake",
 "runtimes": {"fake": {"path": "/usr/local/bin/fake-runtime"}},
 "default-address-pools": [{"base": "10.1.0.0/16", "size": 24}]}
END
systemctl restart docker
cat >/etc/containerd/config.toml <<'END'
version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.fake]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.fake.options]
BinaryName = "/usr/local/bin/fake-runtime"
END
systemctl restart containerd
iptables -P FORWARD DROP`

// fakeClass is a pod of the other runtime.
const fakeClass = `docker save probe:1 | ctr -n k8s.io images import - >/dev/null
kubectl apply -f - <<'END'
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: fake}
handler: fake
---
apiVersion: v1
kind: Pod
metadata: {name: fake}
spec:
  runtimeClassName: fake
  containers: [{name: probe, image: "probe:1", imagePullPolicy: Never, command: [/probe, serve]}]
END
kubectl wait --for condition=Ready pod/fake --timeout 10m`

// usersContainers has a container of each kind that a restart of Docker may lose. All of them run at first.
const usersContainers = `
run() { name=$1; shift; docker run -d --name $name "$@" probe:1 /probe serve; }
run plain; run paused; docker pause paused
docker run -d --name behind --network container:plain probe:1 /probe count /runs # the port of serve is taken
mkdir /root/gone; run broken --mount type=bind,src=/root/gone,dst=/gone; rmdir /root/gone
docker swarm init --advertise-addr %s; docker service create -d --name svc --replicas 2 probe:1 /probe serve
test "$(docker inspect -f '{{.State.Running}}' plain paused behind broken | sort -u)" = true`

// TestUsersDocker: what people have in Docker is kept, or named before anything is changed.
func TestUsersDocker(t *testing.T) {
	m := hosts.New(t, "docker-28.5", "10.134.1.0/24", "e2e-docker")[0]
	// No signal ends a frozen process, so that the host could not be removed.
	t.Cleanup(func() { _, _ = m.Try(context.Background(), "docker unpause paused") })
	m.Sh(t, usersDocker)
	m.Sh(t, "mkdir -p /root/probe && cp /usr/local/bin/probe /root/probe/ && tar -C /root/probe -c . | "+
		"docker import - probe:1")
	namedBefore(t, m)
	m.Sh(t, "sed -i 's/10.1.0.0/10.99.0.0/' /etc/docker/daemon.json; systemctl restart docker")
	m.Sh(t, fmt.Sprintf(usersContainers, m.IP))
	daemonJSON := m.Sh(t, "cat /etc/docker/daemon.json")
	const run = "kube-bootstrap master --no-dedicated --bundle " + hosts.Bundle
	cutShort(t, m, "HUP", run)
	if log := m.Sh(t, "cat /tmp/cut.log"); !strings.Contains(log, "`docker start broken`") {
		t.Errorf("the container that does not start is not named:\n%s", log)
	}
	cutShort(t, m, "KILL", run)
	m.Sh(t, run)
	t.Run("containers after master", func(t *testing.T) { containersAsBefore(t, m) })
	t.Run("runtimes", func(t *testing.T) { runtimes(t, m) })
	t.Run("mtu", func(t *testing.T) {
		if got := m.Sh(t, "cat /sys/class/net/docker0/mtu"); got != "1300" {
			t.Errorf("docker0 has the MTU %s", got)
		}
	})
	t.Run("another program rewrites daemon.json", func(t *testing.T) { rewritten(t, m) })
	t.Run("the policy of FORWARD after a flush", func(t *testing.T) {
		m.Sh(t, "nft flush ruleset")
		hosts.Soon(t, 2*time.Minute, "Docker's chains and its policy", m,
			"iptables -S FORWARD | grep -q DOCKER && iptables -S FORWARD | grep -q -- '-P FORWARD DROP' && "+noRestart)
		containersAsBefore(t, m)
	})
	t.Run("a network that appears later", func(t *testing.T) { laterNetwork(t, m) })
	undone(t, m, daemonJSON)
}

// namedBefore: nothing that a restart would lose, or that would take packets from the cluster, is silent.
func namedBefore(t *testing.T, m hosts.Machine) {
	t.Helper()
	m.Sh(t, "docker run -d --rm --name temporary probe:1 /probe serve; docker network create --subnet 10.1.77.0/24 app")
	defer m.Sh(t, "docker network rm app; docker rm -f temporary")
	_, says := m.Ask(t, "", "preflight master --bundle "+hosts.Bundle, hosts.Bundle)
	for _, want := range []string{
		"with their data: temporary", "10.1.0.0/16 overlaps the Docker network app (10.1.77.0/24)",
		"10.1.0.0/16 overlaps 10.1.0.0/16, from which Docker takes new networks",
	} {
		if !strings.Contains(says, want) {
			t.Errorf("preflight does not say %q:\n%s", want, says)
		}
	}
}

func laterNetwork(t *testing.T, m hosts.Machine) {
	t.Helper()
	m.Sh(t, "docker network create --subnet 10.1.77.0/24 app")
	defer m.Sh(t, "docker network rm app")
	const name = "the Docker network app (10.1.77.0/24)"
	if says, _ := m.Try(t.Context(), "kube-bootstrap status"); !strings.Contains(says, name) {
		t.Errorf("status does not name it:\n%s", says)
	}
	hosts.Soon(t, time.Minute, "the agent names it", m, "journalctl -u kube-bootstrap-agent | grep -qF '"+name+"'")
}

// noRestart is true once no restart of Docker is in progress.
const noRestart = "test ! -e /var/lib/kube-bootstrap/docker-restart.json"

// cutShort ends a run with a signal while Docker is stopped. A second signal of the same kind
// follows, as at the end of an SSH session. Docker must run soon afterwards, with what ran.
func cutShort(t *testing.T, m hosts.Machine, signal, run string) {
	t.Helper()
	out := m.Sh(t, run+` >/tmp/cut.log 2>&1 & p=$!
while kill -0 $p 2>/dev/null; do systemctl is-active -q docker || { kill -`+signal+` $p; sleep 0.1; kill -`+signal+
		` $p; break; }; done; wait $p; echo $?`)
	if code := out[strings.LastIndex(out, "\n")+1:]; code == "0" {
		t.Fatalf("the run was not cut short by %s:\n%s", signal, m.Sh(t, "cat /tmp/cut.log"))
	}
	hosts.Soon(t, time.Minute, "Docker runs after "+signal, m,
		"systemctl is-active -q docker && systemctl is-active -q docker.socket && "+noRestart)
	containersAsBefore(t, m)
}

// containersAsBefore: broken cannot start. A moment passes until swarm has started its tasks.
func containersAsBefore(t *testing.T, m hosts.Machine) {
	t.Helper()
	states := "docker ps -a --format '{{.Names}} {{.State}}' | grep -vE '^(svc|kubelet)' | sort"
	want := "behind running\nbroken exited\npaused paused\nplain running"
	if got := m.Sh(t, states); !slices.Contains([]string{want, strings.Replace(want, "exited", "created", 1)}, got) {
		t.Errorf("containers:\n%s\nwant\n%s", got, want)
	}
	hosts.Soon(t, time.Minute, "two tasks run for two replicas", m, "test $(docker ps -q -f name=svc. | wc -l) = 2")
}

// runtimes: our containers ask for runc, the user's get the default, and a pod that of its class.
func runtimes(t *testing.T, m hosts.Machine) {
	t.Helper()
	if got := m.Sh(t, "docker inspect -f '{{.HostConfig.Runtime}} {{.HostConfig.UsernsMode}}' kubelet "+
		"plain"); got != "runc host\nfake " && got != "runc host\nfake" {
		t.Errorf("kubelet and plain have %q", got)
	}
	m.Sh(t, fakeClass)
	id := m.Sh(t, "kubectl get pod fake -o jsonpath='{.status.containerStatuses[0].containerID}' | sed 's,.*//,,'; "+
		"kubectl delete pod fake --wait=false >/dev/null")
	if _, err := m.Try(t.Context(), "grep -q "+id+" /var/log/fake-runtime.log"); err != nil {
		t.Errorf("the pod of the class does not run in its runtime: %v", err)
	}
}

// rewritten: the agent puts the keys back, and a restart by the other program does not lose the
// subnet of docker0.
func rewritten(t *testing.T, m hosts.Machine) {
	t.Helper()
	address := m.Sh(t, "ip -o -4 addr show docker0 | awk '{print $4}'")
	for _, do := range []string{
		"sed -i '/bip/d; /fixed-cidr/d' /etc/docker/daemon.json",
		"cp /etc/docker/daemon.json /tmp/kept.json; rm /etc/docker/daemon.json",
	} {
		m.Sh(t, do)
		hosts.Soon(t, time.Minute, "the agent puts the keys back", m, "grep -q '\"bip\": \""+address+
			"\"' /etc/docker/daemon.json && grep -q fixed-cidr /etc/docker/daemon.json")
	}
	m.Sh(t, "cp /tmp/kept.json /etc/docker/daemon.json; sed -i '/bip/d' /etc/docker/daemon.json; "+
		"systemctl restart docker; docker start plain behind paused; docker pause paused")
	if got := m.Sh(t, "ip -o -4 addr show docker0 | awk '{print $4}'"); got != address {
		t.Errorf("docker0 has %s, not %s", got, address)
	}
}

// undone turns the host down, also after a first turndown that is killed while Docker is stopped.
func undone(t *testing.T, m hosts.Machine, daemonJSON string) {
	t.Helper()
	cutShort(t, m, "KILL", "kube-bootstrap turndown --yes")
	clusters.Down(t, m)
	containersAsBefore(t, m)
	if got := m.Sh(t, "cat /etc/docker/daemon.json"); got != daemonJSON {
		t.Errorf("daemon.json is\n%s\nwas\n%s", got, daemonJSON)
	}
	if got := m.Sh(t, "iptables -S FORWARD | head -1"); got != "-P FORWARD DROP" {
		t.Errorf("after turndown: %s", got)
	}
}
