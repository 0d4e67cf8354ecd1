//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"
)

// omitsTranslations fails if a component of hyperkube reads the translations of kubectl
// when it starts, or if kubectl does not.
const omitsTranslations = `docker exec -e GODEBUG=inittrace=1 kubelet kube-proxy --version 2>&1 | grep -E '^init k8s.io/kubectl/pkg/cmd/options .* [0-9]{1,5} bytes' &&
	docker exec -e GODEBUG=inittrace=1 kubelet kubectl version --client 2>&1 | grep -E '^init k8s.io/kubectl/pkg/cmd/options .* [0-9]{7} bytes'`

// changeComponents changes flags of components and a feature gate on a control
// plane that runs. A value that a component does not accept is reported with its
// own words, and the next run restores the host.
func changeComponents(t *testing.T, master machine) {
	const gate = `kubernetes_feature_enabled{name="ContextualLogging",stage="BETA"} `
	expect := func(event, enabled string) {
		t.Helper()
		command := master.kubectl(t, "-n kube-system get pod kube-apiserver-"+master.name+" -o 'jsonpath={.spec.containers[0].command}'")
		if got := strings.Contains(command, "--event-ttl=2h"); got != (event != "") {
			t.Errorf("the API server is started with %s", command)
		}
		if metrics := master.kubectl(t, "get --raw /metrics"); !strings.Contains(metrics, gate+enabled+"\n") {
			t.Errorf("the metrics of the API server lack %s%s", gate, enabled)
		}
	}
	expect("", "1")
	master.sh(t, omitsTranslations)
	if metrics := master.kubectl(t, "get --raw /metrics"); !strings.Contains(metrics, "go_gc_gogc_percent 50\n") && !strings.Contains(metrics, "go_gc_gogc_percent 100\n") {
		t.Error("the API server, which started long ago, does not collect its garbage as usual")
	}
	soon(t, time.Minute, "the scheduler to unmap its program", master, "[ $(awk '/RssFile/{print $2}' /proc/$(pgrep -f ^kube-scheduler)/status) -lt 10000 ]") // kB
	// An etcd that waits at least two seconds for a leader gets the message to elect itself.
	master.sh(t, "kube-bootstrap master --apiserver-arg event-ttl=2h --feature-gates ContextualLogging=false --etcd-arg '{heartbeat-interval: 2000, election-timeout: 20000}'")
	expect("2h", "0")
	master.sh(t, "docker -H unix:///run/docker-bootstrap.sock logs etcd 2>&1 | grep 'received MsgTimeoutNow'")
	if kept := master.sh(t, "kube-bootstrap config view"); !strings.Contains(kept, `extraArgs: {"event-ttl": "2h"}`) {
		t.Errorf("config view shows\n%s", kept)
	}
	if code, says := master.ask(t, "", "master --scheduler-arg kube-api-qps=many", bundle); code != "1" || !strings.Contains(says, `invalid argument "many" for "--kube-api-qps"`) {
		t.Errorf("a value that the scheduler does not accept: exit code %s:\n%s", code, says)
	}
	master.sh(t, "kube-bootstrap master --apiserver-arg= --feature-gates= --etcd-arg= && kube-bootstrap status")
	expect("", "1")
}
