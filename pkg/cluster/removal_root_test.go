//go:build root

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// noHosts opens a cluster on the Docker of this machine that has a record and
// volumes, but no hosts.
func noHosts(t *testing.T) (containers.Cluster, Options, session.Record) {
	t.Helper()
	options, err := Options{
		Selection: session.Selection{Name: fmt.Sprintf("unit-%d", os.Getpid()), Provider: containers.EngineChoice{},
			CacheDir: t.TempDir()},
		Request: topology.Request{Workers: 2}, Kubernetes: "v1.37.2", KeepImages: true,
		Made: config.ClusterRecord{Given: map[string]string{"flannelBackend": "host-gw"}},
	}.withDefaults()
	must.NoError(t, err)
	s, err := session.Open(options.Selection, nil)
	must.NoError(t, err)
	c, err := containers.Of(s)
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := c.Remove(context.Background(), session.RecordNote); err != nil {
			t.Error(err)
		}
		must.NoError(t, s.Close())
	})
	r, err := options.record()
	must.NoError(t, err)
	return c, options, r
}

// volumesLeft returns the names of the volumes that are no notes.
func volumesLeft(t *testing.T, c containers.Cluster) string {
	t.Helper()
	all, err := c.Volumes.List(t.Context())
	must.NoError(t, err)
	var names []string
	for _, v := range all {
		if !machines.IsNote(v) {
			names = append(names, strings.TrimPrefix(v.Name, c.Name))
		}
	}
	return strings.Join(names, " ")
}

func recordLeft(t *testing.T, c containers.Cluster) session.Record {
	t.Helper()
	r, err := Recorded(t.Context(), c.Session.Selection)
	must.NoError(t, err)
	if r == nil {
		return session.Record{}
	}
	return *r
}

// TestRecreatingKeepsTheRecord: whether creating the cluster again fails or is
// killed, the next run knows its settings, and which hosts it must remove.
func TestRecreatingKeepsTheRecord(t *testing.T) {
	c, options, record := noHosts(t)
	ctx := t.Context()
	must.NoError(t, errors.Join(c.Session.WriteRecord(ctx, &session.Record{Kubernetes: "v1.36.3"}),
		c.Volumes.Make(ctx, c.Name+"-worker-1-var-lib", nil)))
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if err := replaceHosts(stopped, c, record); err == nil || recordLeft(t, c).Kubernetes != "v1.36.3" {
		t.Fatalf("before anything was removed: %v, %+v", err, recordLeft(t, c))
	}
	killed := record
	killed.Phase = session.Removing
	must.NoError(t, c.Session.WriteRecord(ctx, &killed))
	if left := recordLeft(t, c); left.Settings.Given["flannelBackend"] != "host-gw" || len(left.Nodes) != 3 ||
		left.Phase != session.Removing {
		t.Errorf("killed during the removal: %+v", left)
	}
	if recreate, err := recreates(ctx, c.Session, options); err != nil || !recreate {
		t.Errorf("the next run keeps old hosts: %v", err)
	}
	if err := replaceHosts(ctx, c, record); err != nil || volumesLeft(t, c) != "" {
		t.Errorf("after the removal: %v, %s", err, volumesLeft(t, c))
	}
	if recreate, err := recreates(ctx, c.Session, options); err != nil || recreate {
		t.Errorf("new hosts are removed too: %v", err)
	}
	must.NoError(t, errors.Join(c.Volumes.Make(ctx, c.Name+"-master-1-var-lib", nil), removeBegun(ctx, c)))
	if left := recordLeft(t, c); volumesLeft(t, c) != "" || left.Settings.Given["flannelBackend"] != "host-gw" ||
		left.Phase != session.Creating {
		t.Errorf("after a failed run: %s, %+v", volumesLeft(t, c), left)
	}
	if problems := step.Problems(c.Session.NoNodes(ctx)); len(problems) != 1 ||
		problems[0].Name != "cluster-unfinished" {
		t.Errorf("a cluster without hosts: %v", problems)
	}
	if err := (up{c, options, record}).finish(ctx); err != nil || recordLeft(t, c).Phase != "" {
		t.Errorf("finished: %v, %+v", err, recordLeft(t, c))
	}
}

// TestCleanThatWasKilled: the next run removes the hosts that are left, and none
// of the settings are in force any longer.
func TestCleanThatWasKilled(t *testing.T) {
	c, _, record := noHosts(t)
	ctx := t.Context()
	must.NoError(t, errors.Join(c.Session.WriteRecord(ctx, &record), c.Session.Notes().Set(ctx, "snapshot.used", `{}`)))
	must.NoError(t, c.Session.WriteRecord(ctx, &session.Record{Phase: session.Removing}))
	if left := recordLeft(t, c); len(left.Settings.Given)+len(left.Nodes) > 0 || left.Phase != session.Removing {
		t.Errorf("settings of a removed cluster: %+v", left)
	}
	must.NoError(t, remove(ctx, c))
	if there, err := c.Session.Exists(ctx); err != nil || there {
		t.Errorf("something is left: %v", err)
	}
}

// TestANoteIsReplacedAtOnce reads a note at every moment of its change, as a
// run does that follows a killed one.
func TestANoteIsReplacedAtOnce(t *testing.T) {
	c, _, _ := noHosts(t)
	ctx := t.Context()
	const key = "word"
	missed := make(chan int)
	done, stop := context.WithCancel(ctx)
	must.NoError(t, c.Session.Notes().Set(ctx, key, "0"))
	go func() {
		n := 0
		for done.Err() == nil {
			if notes, err := c.Session.Notes().All(ctx); err == nil && notes[key] == "" {
				n++
			}
		}
		missed <- n
	}()
	for i := range 20 {
		if err := c.Session.Notes().Set(ctx, key, fmt.Sprint(i+1)); err != nil {
			t.Error(err)
		}
	}
	stop()
	if n := <-missed; n > 0 {
		t.Errorf("the note was missing %d times", n)
	}
	if notes, err := c.Session.Notes().All(ctx); err != nil || notes[key] != "20" {
		t.Errorf("the note is %q, %v", notes[key], err)
	}
	if err := c.Session.Notes().Forget(ctx, key); err != nil {
		t.Error(err)
	}
	if all, err := c.Volumes.List(ctx); err != nil || len(all) > 0 {
		t.Errorf("volumes left: %v, %v", all, err)
	}
}

// TestANewNodeIsEmpty: `node remove` was killed between the container of a host
// and its volume.
func TestANewNodeIsEmpty(t *testing.T) {
	c, options, _ := noHosts(t)
	ctx := t.Context()
	nodes := options.Topology(c.Name, topology.State{})
	drop := testhost.NewMachine(c, nodes, nodes.Node(c.Name+"-worker-2")).RemoveOldVolume()
	if diff, err := drop.Check(ctx); err != nil || len(diff) > 0 {
		t.Errorf("without a former node: %v, %v", diff, err)
	}
	for _, name := range []string{"worker-1", "worker-2"} {
		must.NoError(t, c.Volumes.Make(ctx, c.Name+"-"+name+"-var-lib", nil))
	}
	if diff, err := drop.Check(ctx); err != nil || len(diff) != 1 {
		t.Errorf("with its volume: %v, %v", diff, err)
	}
	if err := drop.Apply(ctx); err != nil || volumesLeft(t, c) != "-worker-1-var-lib" {
		t.Errorf("left %q, %v", volumesLeft(t, c), err)
	}
}
