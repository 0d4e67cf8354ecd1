package file

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestViewNamesTheOriginOfEachValue(t *testing.T) {
	path := write(t, head+"dnsDomain: k8s.lan\nnodes:\n- {role: control-plane}\n- {role: worker, count: 2, "+
		"dockerVersion: 28.5, labels: {tier: web}}\n")
	cfg, origins := config.Default(), config.Origins{}
	must.NoError(t, Read(path, &cfg, origins))
	data, err := View(cfg, origins)
	must.NoError(t, err)
	for _, want := range []string{
		"dnsDomain: k8s.lan # file " + path + ":3\n",
		"flannelBackend: vxlan # default\n",
		"- role: control-plane # file " + path + ":5\n",
		"count: 2 # file " + path + ":6\n",
		"hostImage: docker-28.5 # file " + path + ":6\n",
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is missing in\n%s", want, data)
		}
	}
	if strings.Contains(string(data), "\nworkers:") {
		t.Errorf("it has the number of workers beside the nodes:\n%s", data)
	}
}

func TestAViewIsAFile(t *testing.T) {
	want := settings(t, everyKind)
	data, err := View(want, config.Origins{})
	must.NoError(t, err)
	if again, err := View(settings(t, string(data)), config.Origins{}); err != nil || string(again) != string(data) {
		t.Errorf("%v\n%s\nwas\n%s", err, again, data)
	}
}
