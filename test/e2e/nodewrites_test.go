//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// nodeWrites tries what root of a worker could write with the credential of its kubelet: a mirror
// pod that gets the packets of a Service, and objects that fill etcd.
func nodeWrites(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	uid := master.Kubectl(t, "get node "+worker.Name+" -o jsonpath={.metadata.uid}")
	mirror := func(name, labels string) string {
		return fmt.Sprintf(
			`{"metadata":{"name":%q,"namespace":"kube-system","labels":{%s},
			"annotations":{"kubernetes.io/config.mirror":"x"},
			"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":%q,"uid":%q,"controller":true}]},
			"spec":{"nodeName":%[3]q,"hostNetwork":true,
			"containers":[{"name":"c","image":"c","ports":[{"name":"dns","containerPort":1053,"protocol":"UDP"}]}]}}`,
			name, labels, worker.Name, uid)
	}
	event := func(message string) string {
		return fmt.Sprintf(
			`{"metadata":{"name":"of-%s.%x","namespace":"default"},"involvedObject":{"namespace":"default"},
			"message":%q}`, worker.Name, len(message), message)
	}
	file := filepath.Join(t.TempDir(), "object")
	const pods, events = "api/v1/namespaces/kube-system/pods", "api/v1/namespaces/default/events"
	for what, c := range map[string]struct{ path, object, want string }{
		"a mirror pod of CoreDNS":      {pods, mirror("dns-"+worker.Name, `"k8s-app":"kube-dns"`), "422"},
		"a mirror pod without a label": {pods, mirror("web-"+worker.Name, ""), "422"},
		"a component of another node": {
			pods, mirror("kube-scheduler-"+master.Name, `"tier":"control-plane","component":"kube-scheduler"`), "422",
		},
		"a small event": {events, event("small"), "201"},
		"a large event": {events, event(strings.Repeat("x", 100<<10)), "422"},
		"an event with large labels": {
			events, strings.Replace(event("labels"), `"metadata":{`,
				`"metadata":{"annotations":{"x":"`+strings.Repeat("x", 100<<10)+`"},`, 1), "422",
		},
		"an event of the other version": {"apis/events.k8s.io/v1/namespaces/default/events",
			`{"metadata":{"name":"x","namespace":"default","annotations":{"x":"` + strings.Repeat("x", 100<<10) + `"}},
			"eventTime":"2026-01-01T00:00:00.000000Z","type":"Normal","reason":"x","action":"x",
			"reportingController":"example.com/x","reportingInstance":"x",
			"regarding":{"namespace":"default"}}`, "422"},
		"a ResourceSlice": {"apis/resource.k8s.io/v1/resourceslices",
			`{"metadata":{"name":"x"},"spec":{"driver":"example.com","nodeName":"` + worker.Name +
				`","pool":{"name":"x","generation":1,"resourceSliceCount":1}}}`, "422"},
	} {
		must.NoError(t, os.WriteFile(file, []byte(c.object), 0o600))
		worker.Put(t, file, "/run/object")
		out := worker.Sh(t,
			"curl -sk -o /run/answer -w '%{http_code}' --cert /var/lib/kubelet/pki/kubelet-client-current.pem "+
				"-H 'Content-Type: application/json' --data-binary @/run/object https://"+master.IP+":6443/"+c.path)
		if out != c.want {
			t.Errorf("%s: the API server answers %s, want %s:\n%s", what, out, c.want, worker.Sh(t, "cat /run/answer"))
		}
	}
	worker.Sh(t, "rm /run/answer /run/object")
}
