package containers

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider/providertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestTheSettingsOfANodeAreReadBackFromItsContainer(t *testing.T) {
	spec := topology.Spec{Name: "gpu", Role: topology.Worker, NanoCPUs: 15e8, Args: []string{"--node-label=a=b"}}
	state := stateOf("k", []machines.EngineContainer{
		{Name: "k-gpu", Cluster: "k", State: "running", Labels: Labels(spec)},
		{Name: "k-bare", Cluster: "k"}, {Name: "other", Cluster: "o"},
	})
	if got, _ := state.Node("k-gpu"); !reflect.DeepEqual(got.Spec, spec) || !got.Running() {
		t.Errorf("got %+v, want %+v", got, spec)
	}
	if got, _ := state.Node("k-bare"); got.Role != topology.Bare || state.Has("other") {
		t.Errorf("a host without a label is a %s; nodes %v", got.Role, state.Names())
	}
}

// TestClustersOfAnEngine: the network of a cluster is removed last, so hosts without it are remains.
func TestClustersOfAnEngine(t *testing.T) {
	subnet := netip.MustParsePrefix("10.192.0.0/16")
	networks := []docker.Network{
		{Name: "bridge", Subnets: []netip.Prefix{netip.MustParsePrefix("172.17.0.0/16")}},
		{Name: "up", Cluster: "up", Subnets: []netip.Prefix{subnet}},
		{Name: "empty", Cluster: "empty", Subnets: []netip.Prefix{subnet}},
	}
	var got []string
	hosts := []machines.EngineContainer{
		{Name: "up-a", Cluster: "up"}, {Name: "left-a", Cluster: "left"}, {Name: "mine"},
	}
	for _, c := range clusters(networks, hosts) {
		got = append(got, fmt.Sprint(c.Name, c.Nodes.Names(), c.Subnet.IsValid(), c.Remains))
	}
	want := []string{"empty[] true false", "left[left-a] false true", "up[up-a] true false"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFilesOfAClusterOnAnotherEngine: no engine is asked, because the addresses differ and none answers.
func TestFilesOfAClusterOnAnotherEngine(t *testing.T) {
	p := DockerProvider{docker.Open(filepath.Join(t.TempDir(), "none.sock"))}
	dir := t.TempDir()
	if err := p.Owns(t.Context(), "k", dir); err != nil {
		t.Errorf("without a record: %v", err)
	}
	for record, want := range map[string]string{
		`{"address": "` + p.Engine.Address + `"}`: "", `{"address": "tcp://a:1"}`: "engine",
	} {
		must.Write(t, filepath.Join(dir, engineFile), record)
		found := step.Problems(p.Owns(t.Context(), "k", dir))
		if len(found) > 0 != (want != "") || len(found) > 0 && found[0].Name != want {
			t.Errorf("%s: %v, want %q", record, found, want)
		}
	}
	must.Write(t, filepath.Join(dir, engineFile), "{")
	if err := p.Owns(t.Context(), "k", dir); err == nil {
		t.Error("a damaged record is accepted")
	}
}

func TestOnlyContainersAreAClusterOfContainers(t *testing.T) {
	s, err := session.Open(session.Selection{Name: "k", Provider: providertest.New(t), CacheDir: t.TempDir()}, nil)
	must.NoError(t, err)
	if _, err := Of(s); err == nil {
		t.Error("directories are accepted as containers")
	}
}
