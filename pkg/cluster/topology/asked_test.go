package topology

import (
	"fmt"
	"strings"
	"testing"
)

func TestNodesThatAreAskedFor(t *testing.T) {
	recorded := Request{Nodes: []Spec{{Role: Master}, {Role: Worker}, {Role: Worker, Name: "db", Memory: 1 << 30}}}.Specs()
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
		nodes, errs := Resolve("k", recorded, test.asked)
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
