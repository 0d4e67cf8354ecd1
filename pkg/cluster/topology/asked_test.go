package topology

import (
	"fmt"
	"strings"
	"testing"
)

func TestNodesThatAreAskedFor(t *testing.T) {
	recorded := Request{Nodes: []Spec{{Role: ControlPlane}, {Role: Worker},
		{Role: Worker, Name: "db", Memory: 1 << 30}}}.Specs()
	for name, test := range map[string]struct {
		asked Request
		said  map[string]string
		want  string
		wrong string
	}{
		"nothing is said": {Request{ControlPlanes: 1, Workers: 1}, nil, "master-1 worker-1 db", ""},
		"as many": {Request{Workers: 2}, map[string]string{"workers": "--workers"},
			"master-1 worker-1 db", ""},
		"one more": {Request{Workers: 3}, map[string]string{"workers": "--workers"},
			"master-1 worker-1 db worker-2", ""},
		"one less": {Request{Workers: 1}, map[string]string{"workers": "--workers"}, "master-1 worker-1",
			"has 2 nodes of the role worker and not 1 (--workers); omit --workers, or run `kube-bootstrap node " +
				"remove NODE --cluster k` [cluster-differs]"},
		"a list without db": {Request{Nodes: []Spec{{Role: ControlPlane}, {Role: Worker}}},
			map[string]string{"nodes": "nodes (c.yaml:3)"}, "master-1 worker-1",
			"cluster k has node db, which nodes (c.yaml:3) does not list; list it, or run `kube-bootstrap node " +
				"remove db --cluster k` [cluster-differs]"},
		"a longer list": {Request{Nodes: []Spec{{Role: ControlPlane}, {Role: Worker}, {Role: Worker, Name: "db"},
			{Role: Worker, Name: "web"}}}, map[string]string{"nodes": "nodes"}, "master-1 worker-1 db web", ""},
	} {
		nodes, errs := Resolve("k", recorded, test.asked, func(field string) string { return test.said[field] })
		var names []string
		for _, s := range nodes {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: nodes %s, want %s", name, got, test.want)
		}
		if text := fmt.Sprint(errs); len(errs) > 1 || (test.wrong == "") != (len(errs) == 0) ||
			!strings.Contains(text, test.wrong) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
