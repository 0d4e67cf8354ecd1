package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider/providertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// machinesOf returns a cluster of nodes that are no containers: a control plane that answers, and a
// worker that is off. Their addresses do not come from a network of the cluster.
func machinesOf(t *testing.T) (session.Selection, providertest.Directories) {
	t.Helper()
	d := providertest.New(t)
	controlPlane := topology.Spec{Name: "board", Role: topology.ControlPlane}
	root := d.Add(t, "k", topology.ClusterNode{Name: "k-board", Role: controlPlane.Role,
		Addr: netip.MustParseAddr("192.0.2.7"),
		Spec: controlPlane})
	program := must.Write(t, filepath.Join(root, d.ProgramPath()), "#!/bin/sh\necho '{\"upToDate\": true}'\n")
	must.NoError(t, os.Chmod(program, 0o755))
	worker := topology.Spec{Name: "attic", Role: topology.Worker}
	d.Set(t, "k", topology.NodeState{State: "off", ClusterNode: topology.ClusterNode{Name: "k-attic", Role: worker.Role,
		Addr: netip.MustParseAddr("198.51.100.3"), Spec: worker}})
	return session.Selection{Name: "k", Provider: d, CacheDir: t.TempDir()}, d
}

func TestAClusterWhoseNodesAreNoContainersIsListed(t *testing.T) {
	options, d := machinesOf(t)
	must.NoError(t, d.Notes("remains").Set(t.Context(), "a", "note"))
	all, err := List(t.Context(), options)
	if want := (Summary{Name: "k", ControlPlanes: 1, Workers: 1, Running: 1}); err != nil ||
		!slices.Equal(all, []Summary{want}) {
		t.Errorf("got %+v, %v", all, err)
	}
	var names []string
	nodes, err := NodeNames(t.Context(), options)
	for _, n := range nodes {
		names = append(names, fmt.Sprint(n.Name, " ", n.Role, " ", n.Addr, " ", n.State))
	}
	if want := []string{"k-board control-plane 192.0.2.7 running", "k-attic worker 198.51.100.3 off"}; err != nil ||
		!slices.Equal(names, want) {
		t.Errorf("got %q, %v, want %q", names, err, want)
	}
	if addr, err := NodeAddr(t.Context(), options, "attic"); err != nil || addr.String() != "198.51.100.3" {
		t.Errorf("address %s, %v", addr, err)
	}
}

func TestTheRecordOfNodesThatAreNoContainers(t *testing.T) {
	options, d := machinesOf(t)
	if r, err := Recorded(t.Context(), options); r != nil || err != nil {
		t.Errorf("an unfinished cluster: %+v, %v", r, err)
	}
	must.NoError(t, d.Notes("k").Set(t.Context(), session.RecordNote, `{"format": 1, "kubernetes": "v1.37.2"}`))
	if made, err := ReadInstalled(t.Context(), options); err != nil || made.Kubernetes != "v1.37.2" {
		t.Errorf("got %+v, %v", made, err)
	}
}

// TestMachinesAreNotSwitchedOff: a command that only containers have says so, and changes nothing.
func TestMachinesAreNotSwitchedOff(t *testing.T) {
	options, d := machinesOf(t)
	for what, err := range map[string]error{
		"down":  Down(t.Context(), Options{Selection: options}),
		"clean": Clean(t.Context(), Options{Selection: options}),
	} {
		if found := step.Problems(err); len(found) != 1 || found[0].Name != "machines" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if state, err := d.Nodes(t.Context(), "k"); err != nil || !state.Runs("k-board") {
		t.Errorf("nodes %v, %v", state.Names(), err)
	}
}
