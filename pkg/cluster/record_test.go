package cluster

import (
	"encoding/json"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// recordOf returns the record of options with this test as the program, as it
// is read back.
func recordOf(t *testing.T, o Options) session.Record {
	t.Helper()
	t.Setenv("KUBE_BOOTSTRAP_CACHE", t.TempDir())
	o, err := o.withDefaults()
	must.NoError(t, err)
	r, err := o.record()
	must.NoError(t, err)
	word, err := json.Marshal(r)
	must.NoError(t, err)
	back, err := session.ParseRecord("k", string(word))
	must.NoError(t, err)
	return *back
}

func TestARecordIsReadByOtherPrograms(t *testing.T) {
	for name, word := range map[string]string{
		"an empty one":                `{}`,
		"fields that are not known":   `{"format":1,"colour":"red","settings":{"given":{"colour":"red"}}}`,
		"settings by names of fields": `{"Workers":1,"Kubernetes":"v1.36.3","Manifests":null}`,
	} {
		r, err := session.ParseRecord("k", word)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cfg, origins := config.Default(), config.Origins{}
		if _, all, err := cfg.WithRecord(r.Settings, origins); len(all) > 0 || err != nil {
			t.Errorf("%s: differs by %v", name, all)
		}
		if now := recordOf(t, Options{Made: cfg.Record(origins)}); !r.Settings.Includes(now.Settings) {
			t.Errorf("%s: its settings are not those of %+v", name, now)
		}
	}
	_, err := session.ParseRecord("k", `{"format":2}`)
	if found := step.Problems(err); len(found) != 1 || found[0].Name != "cluster-version" {
		t.Errorf("a newer format: %v", err)
	}
}

func TestWhatAClusterThatIsOffHasToBeGiven(t *testing.T) {
	then := recordOf(t, Options{
		Request: topology.Request{Nodes: []topology.Spec{{Role: topology.ControlPlane},
			{Role: topology.Worker, Name: "db"}}},
		Made: config.ClusterRecord{Given: map[string]string{"restartPolicy": "no"}},
	})
	same := then
	same.Program = "another"
	if then.Asks(same) {
		t.Error("the same cluster asks for something")
	}
	for what, now := range map[string]session.Record{
		"a node": {Nodes: []topology.Spec{{Name: "web", Role: topology.Worker}}},
		"a label of a node": {Nodes: []topology.Spec{{
			Name: "db", Role: topology.Worker, Args: []string{"--node-label=a=b"},
		}}},
		"a setting": {Settings: config.ClusterRecord{Given: map[string]string{"restartPolicy": "always"}}},
	} {
		if !then.Asks(now) {
			t.Errorf("%s is not asked for", what)
		}
	}
}
