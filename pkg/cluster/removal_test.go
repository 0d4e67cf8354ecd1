package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

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
func noHosts(t *testing.T) (*session.Session, Options, session.Record) {
	t.Helper()
	options, err := Options{
		Options: session.Options{Name: fmt.Sprintf("unit-%d", os.Getpid()), CacheDir: t.TempDir()},
		Request: topology.Request{Workers: 2}, Kubernetes: "v1.37.2", KeepImages: true,
		Made: config.Made{Given: map[string]string{"flannelBackend": "host-gw"}},
	}.withDefaults()
	must.NoError(t, err)
	s, err := session.Open(options.Options, nil)
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := s.Cluster().Remove(context.Background(), session.RecordNote); err != nil {
			t.Error(err)
		}
		s.Engine.Close()
	})
	r, err := options.record()
	must.NoError(t, err)
	return s, options, r
}

// volumesLeft returns the names of the volumes that are no notes.
func volumesLeft(t *testing.T, s *session.Session) string {
	t.Helper()
	all, err := s.Cluster().Volumes.List(t.Context())
	must.NoError(t, err)
	var names []string
	for _, v := range all {
		if !machines.IsNote(v) {
			names = append(names, strings.TrimPrefix(v.Name, s.Name))
		}
	}
	return strings.Join(names, " ")
}

func recordLeft(t *testing.T, s *session.Session) session.Record {
	t.Helper()
	r, err := Recorded(t.Context(), s.Options)
	must.NoError(t, err)
	if r == nil {
		return session.Record{}
	}
	return *r
}

// TestRecreatingKeepsTheRecord: whether creating the cluster again fails or is
// killed, the next run knows its settings, and which hosts it must remove.
func TestRecreatingKeepsTheRecord(t *testing.T) {
	s, options, record := noHosts(t)
	ctx := t.Context()
	must.NoError(t, errors.Join(s.WriteRecord(ctx, &session.Record{Kubernetes: "v1.36.3"}), s.Cluster().Volumes.Make(ctx, s.Name+"-worker-1-var-lib", nil)))
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if err := replaceHosts(stopped, s, record); err == nil || recordLeft(t, s).Kubernetes != "v1.36.3" {
		t.Fatalf("before anything was removed: %v, %+v", err, recordLeft(t, s))
	}
	killed := record
	killed.Phase = session.Removing
	must.NoError(t, s.WriteRecord(ctx, &killed))
	if left := recordLeft(t, s); left.Settings.Given["flannelBackend"] != "host-gw" || len(left.Nodes) != 3 || left.Phase != session.Removing {
		t.Errorf("killed during the removal: %+v", left)
	}
	if recreate, err := recreates(ctx, s, options); err != nil || !recreate {
		t.Errorf("the next run keeps old hosts: %v", err)
	}
	if err := replaceHosts(ctx, s, record); err != nil || volumesLeft(t, s) != "" {
		t.Errorf("after the removal: %v, %s", err, volumesLeft(t, s))
	}
	if recreate, err := recreates(ctx, s, options); err != nil || recreate {
		t.Errorf("new hosts are removed too: %v", err)
	}
	must.NoError(t, errors.Join(s.Cluster().Volumes.Make(ctx, s.Name+"-master-1-var-lib", nil), removeBegun(ctx, s)))
	if left := recordLeft(t, s); volumesLeft(t, s) != "" || left.Settings.Given["flannelBackend"] != "host-gw" || left.Phase != session.Creating {
		t.Errorf("after a failed run: %s, %+v", volumesLeft(t, s), left)
	}
	if problems := step.Problems(s.NoNodes(ctx)); len(problems) != 1 || problems[0].Name != "cluster-unfinished" {
		t.Errorf("a cluster without hosts: %v", problems)
	}
	if err := (up{s, options, record}).finish(ctx); err != nil || recordLeft(t, s).Phase != "" {
		t.Errorf("finished: %v, %+v", err, recordLeft(t, s))
	}
}

// TestCleanThatWasKilled: the next run removes the hosts that are left, and none
// of the settings are in force any longer.
func TestCleanThatWasKilled(t *testing.T) {
	s, _, record := noHosts(t)
	ctx := t.Context()
	must.NoError(t, errors.Join(s.WriteRecord(ctx, &record), s.Cluster().Notes.Set(ctx, "snapshot.used", `{}`)))
	must.NoError(t, s.WriteRecord(ctx, &session.Record{Phase: session.Removing}))
	if left := recordLeft(t, s); len(left.Settings.Given)+len(left.Nodes) > 0 || left.Phase != session.Removing {
		t.Errorf("settings of a removed cluster: %+v", left)
	}
	must.NoError(t, remove(ctx, s))
	if there, err := s.Exists(ctx); err != nil || there {
		t.Errorf("something is left: %v", err)
	}
}

// TestANoteIsReplacedAtOnce reads a note at every moment of its change, as a
// run does that follows a killed one.
func TestANoteIsReplacedAtOnce(t *testing.T) {
	s, _, _ := noHosts(t)
	ctx := t.Context()
	const key = "word"
	missed := make(chan int)
	done, stop := context.WithCancel(ctx)
	must.NoError(t, s.Cluster().Notes.Set(ctx, key, "0"))
	go func() {
		n := 0
		for done.Err() == nil {
			if notes, err := s.Cluster().Notes.All(ctx); err == nil && notes[key] == "" {
				n++
			}
		}
		missed <- n
	}()
	for i := range 20 {
		if err := s.Cluster().Notes.Set(ctx, key, fmt.Sprint(i+1)); err != nil {
			t.Error(err)
		}
	}
	stop()
	if n := <-missed; n > 0 {
		t.Errorf("the note was missing %d times", n)
	}
	if notes, err := s.Cluster().Notes.All(ctx); err != nil || notes[key] != "20" {
		t.Errorf("the note is %q, %v", notes[key], err)
	}
	if err := s.Cluster().Notes.Forget(ctx, key); err != nil {
		t.Error(err)
	}
	if all, err := s.Cluster().Volumes.List(ctx); err != nil || len(all) > 0 {
		t.Errorf("volumes left: %v, %v", all, err)
	}
}

// TestANewNodeIsEmpty: `node remove` was killed between the container of a host
// and its volume.
func TestANewNodeIsEmpty(t *testing.T) {
	s, options, _ := noHosts(t)
	ctx := t.Context()
	nodes := options.Topology(s.Name, topology.State{})
	drop := testhost.NewMachine(s, nodes, nodes.Node(s.Name+"-worker-2")).RemoveOldVolume()
	if diff, err := drop.Check(ctx); err != nil || len(diff) > 0 {
		t.Errorf("without a former node: %v, %v", diff, err)
	}
	for _, name := range []string{"worker-1", "worker-2"} {
		must.NoError(t, s.Cluster().Volumes.Make(ctx, s.Name+"-"+name+"-var-lib", nil))
	}
	if diff, err := drop.Check(ctx); err != nil || len(diff) != 1 {
		t.Errorf("with its volume: %v, %v", diff, err)
	}
	if err := drop.Apply(ctx); err != nil || volumesLeft(t, s) != "-worker-1-var-lib" {
		t.Errorf("left %q, %v", volumesLeft(t, s), err)
	}
}
