package cluster

import (
	"context"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestOptionsNameEveryProblem(t *testing.T) {
	t.Setenv("KUBE_BOOTSTRAP_CACHE", t.TempDir())
	tests := map[string]struct {
		options Options
		problem string
	}{
		"name": {Options{Selection: session.Selection{Name: "Kube_1"}}, "cluster-name"},
		"node name": {Options{Request: topology.Request{Nodes: []topology.Spec{{Role: topology.ControlPlane},
			{Role: topology.Worker, Name: "A"}}}}, "cluster-name"},
		"no master": {Options{Request: topology.Request{Nodes: []topology.Spec{{Role: topology.Worker}}}},
			"cluster-size"},
		"same name": {Options{Request: topology.Request{Nodes: []topology.Spec{{Role: topology.ControlPlane},
			{Role: topology.Worker, Name: "master-1"}}}}, "cluster-nodes"},
		"node image": {Options{Request: topology.Request{Nodes: []topology.Spec{{Role: topology.ControlPlane,
			HostImage: "x"}}}}, "host-image"},
		"host name": {Options{Request: topology.Request{Hosts: []string{"-a"}}}, "cluster-name"},
		"masters":   {Options{Request: topology.Request{ControlPlanes: 6}}, "cluster-size"},
		"workers":   {Options{Request: topology.Request{Workers: -1}}, "cluster-size"},
		"image":     {Options{Request: topology.Request{HostImage: "docker-1"}}, "host-image"},
		"not a network": {Options{Request: topology.Request{Subnet: netip.MustParsePrefix("10.1.2.3/16")}},
			"cluster-subnet"},
		"IPv6": {Options{Request: topology.Request{Subnet: netip.MustParsePrefix("fd00::/64")}}, "cluster-subnet"},
		"too small": {Options{Request: topology.Request{Subnet: netip.MustParsePrefix("10.1.0.0/29"), Workers: 3}},
			"cluster-subnet"},
		"no bundle": {Options{Bundle: "/does/not/exist"}, "bundle"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.options.withDefaults()
			problems := step.Problems(err)
			if len(problems) != 1 || problems[0].Name != test.problem || problems[0].Remedy == "" {
				t.Errorf("got %v, want one problem %q with a remedy", err, test.problem)
			}
		})
	}
	if _, err := (Options{Request: topology.Request{Workers: 3}}).withDefaults(); err != nil {
		t.Errorf("defaults: %v", err)
	}
}

func TestAllProblemsAreToldAtOnce(t *testing.T) {
	t.Setenv("KUBE_BOOTSTRAP_CACHE", t.TempDir())
	_, err := Options{Selection: session.Selection{Name: "A"},
		Request: topology.Request{Workers: -1, HostImage: "x"}}.withDefaults()
	if n := len(step.Problems(err)); n != 3 {
		t.Errorf("%d problems told, want 3: %v", n, err)
	}
}

func TestEngineThatDoesNotAnswer(t *testing.T) {
	engine := containers.EngineChoice{
		Choice: docker.Choice{Address: "unix://" + filepath.Join(t.TempDir(), "none.sock")},
	}
	options := Options{Selection: session.Selection{Provider: engine, CacheDir: t.TempDir()}}
	_, err := Hosts(context.Background(), options, nil)
	problems := step.Problems(err)
	if len(problems) != 1 || problems[0].Name != "engine" {
		t.Errorf("got %v, want the problem engine", err)
	}
}
