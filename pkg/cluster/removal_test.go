package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// noHostsFleet returns a fleet on the Docker of this machine that has a record
// and volumes, but no hosts.
func noHostsFleet(t *testing.T) (*fleet, Record) {
	t.Helper()
	options := Options{
		Name: fmt.Sprintf("unit-%d", os.Getpid()), CacheDir: t.TempDir(), Kubernetes: "v1.37.2", Workers: 2, KeepImages: true,
		Made: config.Made{Given: map[string]string{"flannelBackend": "host-gw"}},
	}
	f, err := open(options, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.docker.RemoveFleet(context.Background(), f.Name, recordKey); err != nil {
			t.Error(err)
		}
		f.docker.Close()
	})
	r, err := f.record()
	if err != nil {
		t.Fatal(err)
	}
	return f, r
}

// volumesLeft returns the names of the volumes that are no notes.
func (f *fleet) volumesLeft(t *testing.T) string {
	t.Helper()
	all, err := f.docker.Volumes(t.Context(), f.Name)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range all {
		if !v.IsNote() {
			names = append(names, strings.TrimPrefix(v.Name, f.Name))
		}
	}
	return strings.Join(names, " ")
}

func (f *fleet) recordLeft(t *testing.T) Record {
	t.Helper()
	r, err := Recorded(t.Context(), f.Options)
	if err != nil {
		t.Fatal(err)
	}
	if r == nil {
		return Record{}
	}
	return *r
}

// TestRecreatingKeepsTheRecord: whether creating the cluster again fails or is
// killed, the next run knows its settings, and which hosts it must remove.
func TestRecreatingKeepsTheRecord(t *testing.T) {
	f, record := noHostsFleet(t)
	ctx := t.Context()
	if err := errors.Join(f.note(ctx, &Record{Kubernetes: "v1.36.3"}), f.docker.MakeVolume(ctx, f.Name, f.Name+"-worker-1-var-lib", nil)); err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if err := f.replaceHosts(stopped, record); err == nil || f.recordLeft(t).Kubernetes != "v1.36.3" {
		t.Fatalf("before anything was removed: %v, %+v", err, f.recordLeft(t))
	}
	killed := record
	killed.Phase = Removing
	if err := f.note(ctx, &killed); err != nil {
		t.Fatal(err)
	}
	if left := f.recordLeft(t); left.Settings.Given["flannelBackend"] != "host-gw" || len(left.Nodes) != 3 || left.Phase != Removing {
		t.Errorf("killed during the removal: %+v", left)
	}
	next := &fleet{Options: f.Options, docker: f.docker, all: f.all, emit: f.emit}
	if err := next.resume(ctx); err != nil || !next.Recreate {
		t.Errorf("the next run keeps old hosts: %v", err)
	}
	if err := f.replaceHosts(ctx, record); err != nil || f.volumesLeft(t) != "" {
		t.Errorf("after the removal: %v, %s", err, f.volumesLeft(t))
	}
	next.Recreate = false
	if err := next.resume(ctx); err != nil || next.Recreate {
		t.Errorf("new hosts are removed too: %v", err)
	}
	if err := errors.Join(f.docker.MakeVolume(ctx, f.Name, f.Name+"-master-1-var-lib", nil), f.removeBegun(ctx)); err != nil {
		t.Fatal(err)
	}
	if left := f.recordLeft(t); f.volumesLeft(t) != "" || left.Settings.Given["flannelBackend"] != "host-gw" || left.Phase != Creating {
		t.Errorf("after a failed run: %s, %+v", f.volumesLeft(t), left)
	}
	if problems := step.Problems(f.noHosts(ctx)); len(problems) != 1 || problems[0].Name != "cluster-unfinished" {
		t.Errorf("a cluster without hosts: %v", problems)
	}
	f.FirstSnapshot = false
	if err := f.finish(ctx, record); err != nil || f.recordLeft(t).Phase != "" {
		t.Errorf("finished: %v, %+v", err, f.recordLeft(t))
	}
}

// TestCleanThatWasKilled: the next run removes the hosts that are left, and none
// of the settings are in force any longer.
func TestCleanThatWasKilled(t *testing.T) {
	f, record := noHostsFleet(t)
	ctx := t.Context()
	if err := errors.Join(f.note(ctx, &record), f.docker.Note(ctx, f.Name, snapshotKey+"used", `{}`)); err != nil {
		t.Fatal(err)
	}
	if err := f.note(ctx, &Record{Phase: Removing}); err != nil {
		t.Fatal(err)
	}
	if left := f.recordLeft(t); len(left.Settings.Given)+len(left.Nodes) > 0 || left.Phase != Removing {
		t.Errorf("settings of a removed cluster: %+v", left)
	}
	if err := f.remove(ctx); err != nil {
		t.Fatal(err)
	}
	if there, err := f.exists(ctx); err != nil || there {
		t.Errorf("something is left: %v", err)
	}
}

// TestANoteIsReplacedAtOnce reads a note at every moment of its change, as a
// run does that follows a killed one.
func TestANoteIsReplacedAtOnce(t *testing.T) {
	f, _ := noHostsFleet(t)
	ctx := t.Context()
	const key = "word"
	missed := make(chan int)
	done, stop := context.WithCancel(ctx)
	if err := f.docker.Note(ctx, f.Name, key, "0"); err != nil {
		t.Fatal(err)
	}
	go func() {
		n := 0
		for done.Err() == nil {
			if notes, err := f.docker.Notes(ctx, f.Name); err == nil && notes[key] == "" {
				n++
			}
		}
		missed <- n
	}()
	for i := range 20 {
		if err := f.docker.Note(ctx, f.Name, key, fmt.Sprint(i+1)); err != nil {
			t.Error(err)
		}
	}
	stop()
	if n := <-missed; n > 0 {
		t.Errorf("the note was missing %d times", n)
	}
	if notes, err := f.docker.Notes(ctx, f.Name); err != nil || notes[key] != "20" {
		t.Errorf("the note is %q, %v", notes[key], err)
	}
	if err := f.docker.Forget(ctx, f.Name, key); err != nil {
		t.Error(err)
	}
	if all, err := f.docker.Volumes(ctx, f.Name); err != nil || len(all) > 0 {
		t.Errorf("volumes left: %v, %v", all, err)
	}
}

// TestANewNodeIsEmpty: `node remove` was killed between the container of a host
// and its volume.
func TestANewNodeIsEmpty(t *testing.T) {
	f, _ := noHostsFleet(t)
	ctx := t.Context()
	m := f.byName(f.Name + "-worker-2")
	drop := f.dropLeft(m)
	if diff, err := drop.Check(ctx); err != nil || len(diff) > 0 {
		t.Errorf("without a former node: %v, %v", diff, err)
	}
	for _, name := range []string{"worker-1", "worker-2"} {
		if err := f.docker.MakeVolume(ctx, f.Name, f.Name+"-"+name+"-var-lib", nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff, err := drop.Check(ctx); err != nil || len(diff) != 1 {
		t.Errorf("with its volume: %v, %v", diff, err)
	}
	if err := drop.Apply(ctx); err != nil || f.volumesLeft(t) != "-worker-1-var-lib" {
		t.Errorf("left %q, %v", f.volumesLeft(t), err)
	}
}
