package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// recordOf returns the record of options with this test as the program, as it
// is read back.
func recordOf(t *testing.T, o Options) Record {
	t.Helper()
	t.Setenv("KUBE_BOOTSTRAP_CACHE", t.TempDir())
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r, err := o.record()
	if err != nil {
		t.Fatal(err)
	}
	word, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := parseRecord("k", string(word))
	if err != nil {
		t.Fatal(err)
	}
	return *back
}

func TestARecordIsReadByOtherPrograms(t *testing.T) {
	for name, word := range map[string]string{
		"an empty one":                `{}`,
		"fields that are not known":   `{"format":1,"colour":"red","settings":{"given":{"colour":"red"}}}`,
		"settings by names of fields": `{"Workers":1,"Kubernetes":"v1.36.3","Manifests":null}`,
	} {
		r, err := parseRecord("k", word)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cfg, origins := config.Default(), config.Origins{}
		if _, all := cfg.WithMade(r.Settings, origins); len(all) > 0 {
			t.Errorf("%s: differs by %v", name, all)
		}
		if now := recordOf(t, Options{Made: cfg.Made(origins)}); !r.Settings.Includes(now.Settings) {
			t.Errorf("%s: its settings are not those of %+v", name, now)
		}
	}
	_, err := parseRecord("k", `{"format":2}`)
	if found := step.Problems(err); len(found) != 1 || found[0].Name != "cluster-version" {
		t.Errorf("a newer format: %v", err)
	}
}

func TestWhatAClusterThatIsOffHasToBeGiven(t *testing.T) {
	then := recordOf(t, Options{Nodes: []Spec{{Role: Master}, {Role: Worker, Name: "db"}}, Made: config.Made{Given: map[string]string{"restartPolicy": "no"}}})
	same := then
	same.Program = "another"
	if then.asks(same) {
		t.Error("the same cluster asks for something")
	}
	for what, now := range map[string]Record{
		"a node":            {Nodes: []Spec{{Name: "web", Role: Worker}}},
		"a label of a node": {Nodes: []Spec{{Name: "db", Role: Worker, Args: []string{"--node-label=a=b"}}}},
		"a setting":         {Settings: config.Made{Given: map[string]string{"restartPolicy": "always"}}},
	} {
		if !then.asks(now) {
			t.Errorf("%s is not asked for", what)
		}
	}
}

func TestNodesThatAreAskedFor(t *testing.T) {
	there := recordOf(t, Options{Nodes: []Spec{{Role: Master}, {Role: Worker}, {Role: Worker, Name: "db", Memory: 1 << 30}}})
	for name, test := range map[string]struct {
		asked Asked
		want  string
		wrong string
	}{
		"nothing is said":   {Asked{Masters: 1, Workers: 1}, "master-1 worker-1 db", ""},
		"as many":           {Asked{Workers: 2, ByWorkers: "--workers"}, "master-1 worker-1 db", ""},
		"one more":          {Asked{Workers: 3, ByWorkers: "--workers"}, "master-1 worker-1 db worker-2", ""},
		"one less":          {Asked{Workers: 1, ByWorkers: "--workers"}, "master-1 worker-1", "has 2 nodes of the role worker and not 1 (--workers); omit --workers, or run `kube-bootstrap node remove NODE --cluster k` [cluster-differs]"},
		"a list without db": {Asked{Nodes: []Spec{{Role: Master}, {Role: Worker}}, ByNodes: "nodes (c.yaml:3)"}, "master-1 worker-1", "cluster k has node db, which nodes (c.yaml:3) does not list; list it, or run `kube-bootstrap node remove db --cluster k` [cluster-differs]"},
		"a longer list":     {Asked{Nodes: []Spec{{Role: Master}, {Role: Worker}, {Role: Worker, Name: "db"}, {Role: Worker, Name: "web"}}, ByNodes: "nodes"}, "master-1 worker-1 db web", ""},
	} {
		nodes, errs := there.Resolve("k", test.asked)
		var names []string
		for _, s := range nodes {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: nodes %s, want %s", name, got, test.want)
		}
		if text := fmt.Sprint(errs); len(errs) > 1 || (test.wrong == "") != (len(errs) == 0) || !strings.Contains(text, test.wrong) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestHostsThatExistWithOtherSettings(t *testing.T) {
	f := &fleet{Options: Options{Name: "k", HostImage: "docker-28.5", Subnet: DefaultSubnet, Nodes: []Spec{
		{Name: "master-1", Role: Master}, {Name: "db", Role: Worker, Memory: 2 << 30, Args: []string{"--node-label=a=b"}}, {Name: "web", Role: Worker, HostImage: "sysv"},
	}}}
	f.all = f.Options.members()
	found := func(spec Spec, image string) docker.FoundMachine {
		return docker.FoundMachine{Name: "k-" + spec.Name, Image: hostImages + ":" + image + "-0123456789ab", Labels: spec.label()}
	}
	errs := f.changed([]docker.FoundMachine{
		found(Spec{Name: "master-1", Role: Master}, "docker-28.5"),
		found(Spec{Name: "db", Role: Worker, Memory: 1 << 30, NanoCPUs: 15e8}, "docker-28.5"),
		found(Spec{Name: "web", Role: Worker}, "docker-28.5"),
	})
	text := fmt.Sprint(errs)
	for _, want := range []string{"node db of cluster k exists with cpus 1500m and not unlimited, memory 1Gi and not 2Gi;", "node web of cluster k exists with hostImage docker-28.5 and not sysv;"} {
		if !strings.Contains(text, want) || len(errs) != 2 {
			t.Errorf("got %s, want %s", text, want)
		}
	}
	then := &Record{Nodes: []Spec{{Name: "master-1", Role: Master}}}
	f.all = Options{Name: "k", Subnet: DefaultSubnet, Nodes: []Spec{{Role: Master}, {Role: Master}}}.members()
	if errs := f.grown(then, nil); len(errs) != 1 || !strings.Contains(errs[0].Error(), "cluster k has no control plane k-master-2;") {
		t.Errorf("a second control plane: %v", errs) // the first one was lost and is created again
	}
}
