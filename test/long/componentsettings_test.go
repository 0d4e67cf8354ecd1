//go:build e2e

package long

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// changeComponents changes flags of components and a feature gate on a control
// plane that runs. A value that a component does not accept is reported with its
// own words, and the next run restores the host.
func changeComponents(t *testing.T, master hosts.Machine) {
	const gate = `kubernetes_feature_enabled{name="ContextualLogging",stage="BETA"} `
	expect := func(event, enabled string) {
		t.Helper()
		command := master.Kubectl(t, "-n kube-system get pod kube-apiserver-"+master.Name+
			" -o 'jsonpath={.spec.containers[0].command}'")
		if got := strings.Contains(command, "--event-ttl=2h"); got != (event != "") {
			t.Errorf("the API server is started with %s", command)
		}
		if metrics := master.Kubectl(t, "get --raw /metrics"); !strings.Contains(metrics, gate+enabled+"\n") {
			t.Errorf("the metrics of the API server lack %s%s", gate, enabled)
		}
	}
	expect("", "1")
	if metrics := master.Kubectl(t, "get --raw /metrics"); !strings.Contains(metrics, "go_gc_gogc_percent 100\n") {
		t.Error("the API server does not collect its garbage as upstream's does")
	}
	master.Sh(t, "kube-bootstrap master --apiserver-arg event-ttl=2h --feature-gates ContextualLogging=false "+
		"--etcd-arg snapshot-count=20000")
	expect("2h", "0")
	master.Sh(t, "docker -H unix:///run/docker-bootstrap.sock inspect etcd | grep -e '\"--snapshot-count=20000\"'")
	if kept := master.Sh(t, "kube-bootstrap config view"); !strings.Contains(kept, `extraArgs: {"event-ttl": "2h"}`) {
		t.Errorf("config view shows\n%s", kept)
	}
	if code, says := master.Ask(t, "", "master --scheduler-arg kube-api-qps=many", hosts.Bundle); code != "1" ||
		!strings.Contains(says, `invalid argument "many" for "--kube-api-qps"`) {
		t.Errorf("a value that the scheduler does not accept: exit code %s:\n%s", code, says)
	}
	master.Sh(t, "kube-bootstrap master --apiserver-arg= --feature-gates= --etcd-arg= && kube-bootstrap status")
	expect("", "1")
}
