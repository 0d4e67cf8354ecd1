package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// savedHost makes a snapshot of one host, master-1: its note with more fields, and its volume,
// but not its image.
func savedHost(t *testing.T, s *session.Session, name string, more ...string) (image string) {
	t.Helper()
	machine := s.Name + "-master-1"
	note := fmt.Sprintf(`{"format": 1, "snapshot": {"name": %q},
		"machines": [{"Name": %q, "Cluster": %q, "Volumes": {"/var/lib": "%s-var-lib"}}]%s}`, name, machine, s.Name, machine, strings.Join(more, ""))
	must.NoError(t, errors.Join(s.Cluster().Notes.Set(t.Context(), "snapshot."+name, note),
		s.Cluster().Volumes.Make(t.Context(), machine+"-var-lib.snapshot."+name, map[string]string{"kube-bootstrap.dev/snapshot": name})))
	return "kube-bootstrap/snapshot:" + machine + "." + name
}

// importEmpty makes an image of the cluster without files.
func importEmpty(t *testing.T, s *session.Session, ref string) {
	t.Helper()
	must.NoError(t, s.Engine.Images().Import(t.Context(), ref, bytes.NewReader(make([]byte, 1024)), "LABEL "+docker.ClusterLabel+"="+s.Name))
}

// hasProblem fails the test unless err is the problem with this name and remedy.
func hasProblem(t *testing.T, err error, name, remedy string) {
	t.Helper()
	if found := step.Problems(err); len(found) != 1 || found[0].Name != name || !strings.Contains(found[0].Remedy, remedy) {
		t.Errorf("got %v, want %s with the remedy %s", err, name, remedy)
	}
}

// TestAnIncompleteSnapshotIsNotRestored: `docker system prune -a` has removed the image of a
// snapshot. The hosts must stay.
func TestAnIncompleteSnapshotIsNotRestored(t *testing.T) {
	s, options, record := noHosts(t)
	ctx := t.Context()
	image := savedHost(t, s, "used")
	must.NoError(t, errors.Join(s.WriteRecord(ctx, &record), s.Cluster().Volumes.Make(ctx, s.Name+"-master-1-var-lib", nil)))
	err := RestoreSnapshot(ctx, options, "used", nil)
	hasProblem(t, err, "snapshot-incomplete", "another snapshot")
	if !strings.Contains(fmt.Sprint(err), "the Docker engine lacks "+image+"; ") {
		t.Errorf("%v: want the image %s only", err, image)
	}
	notes, err := s.Cluster().Notes.All(ctx)
	must.NoError(t, err)
	if left := strings.Fields(volumesLeft(t, s)); notes[session.RestoringNote] != "" || notes[session.RecordNote] == "" || !slices.Contains(left, "-master-1-var-lib") {
		t.Errorf("the cluster has changed: notes %v, volumes %v", notes, left)
	}
}

// TestAnImageInUseOutlivesItsSnapshot: the hosts were restored from a snapshot that is then removed.
func TestAnImageInUseOutlivesItsSnapshot(t *testing.T) {
	s, options, _ := noHosts(t)
	ctx := t.Context()
	used, other := savedHost(t, s, "used"), savedHost(t, s, "other")
	importEmpty(t, s, used)
	importEmpty(t, s, other)
	restored, err := s.Engine.ContainerCreate(ctx, client.ContainerCreateOptions{Config: &container.Config{
		Image: used, Cmd: []string{"/init"}, Labels: map[string]string{docker.OurLabel: "cluster", docker.ClusterLabel: s.Name},
	}})
	must.NoError(t, err)
	for _, name := range []string{"used", "other"} {
		if err := snapshot.Remove(ctx, options.Options, name); err != nil {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	if left, err := s.Cluster().Images(ctx); err != nil || !slices.Equal(left, []string{used}) {
		t.Errorf("images %v, %v, want %s", left, err, used)
	}
	must.NoError(t, s.Engine.Remove(ctx, restored.ID))
	hasProblem(t, snapshot.Remove(ctx, options.Options, "none"), "snapshot-missing", "save none")
	if left, err := s.Cluster().Images(ctx); err != nil || len(left) > 0 {
		t.Errorf("without the host: images %v, %v", left, err)
	}
}

// TestOneRunAtATime: another run, such as `cluster up`, changes the cluster.
func TestOneRunAtATime(t *testing.T) {
	s, options, _ := noHosts(t)
	ctx := t.Context()
	savedHost(t, s, "used")
	release, err := s.Hold(ctx, session.ClusterLock)
	must.NoError(t, err)
	defer release()
	for what, err := range map[string]error{
		"save":    snapshot.Save(ctx, options.Options, "other", nil),
		"restore": RestoreSnapshot(ctx, options, "used", nil),
		"remove":  snapshot.Remove(ctx, options.Options, "used"),
	} {
		if !errors.Is(err, host.ErrLocked) {
			t.Errorf("%s: %v, want %v", what, err, host.ErrLocked)
		}
	}
	if kept, err := snapshot.Names(ctx, s); err != nil || !slices.Equal(kept, []string{"used"}) {
		t.Errorf("snapshots %v, %v", kept, err)
	}
}

// TestARestoreBringsBackTheComponents, so that `cluster up` and `node add` do not run those of a
// later `reup`. The restores fail, because the snapshots have no subnet and no shell.
func TestARestoreBringsBackTheComponents(t *testing.T) {
	s, options, _ := noHosts(t)
	ctx := t.Context()
	const own = `{"kubelet":"v1.37.2+a"}`
	importEmpty(t, s, savedHost(t, s, "release"))
	importEmpty(t, s, savedHost(t, s, "checkout", `, "components": `+strconv.Quote(own)))
	for _, name := range []string{"checkout", "release"} {
		must.NoError(t, s.Cluster().Notes.Set(ctx, session.ComponentsNote, `{"kubelet":"v1.37.2+b"}`))
		if err := RestoreSnapshot(ctx, options, name, nil); err == nil {
			t.Errorf("%s was restored", name)
		}
		notes, err := s.Cluster().Notes.All(ctx)
		want := map[string]string{"checkout": own}[name]
		if err != nil || notes[session.RestoringNote] != name || notes[session.ComponentsNote] != want {
			t.Errorf("%s: notes %v, %v, want components %q", name, notes, err, want)
		}
	}
	if kept, err := snapshot.Components(ctx, s); err != nil || !slices.Equal(kept, []string{own}) {
		t.Errorf("components of snapshots %q, %v", kept, err)
	}
}

// TestTheFirstSnapshotIsRetried: the first run has recorded that the cluster is up, and could not
// save the snapshot, because the hosts are gone.
func TestTheFirstSnapshotIsRetried(t *testing.T) {
	s, options, record := noHosts(t)
	ctx := t.Context()
	options.FirstSnapshot = true
	pending := func() bool {
		notes, err := s.Cluster().Notes.All(ctx)
		must.NoError(t, err)
		return notes[session.FirstNote] != ""
	}
	for _, run := range []string{"first", "second"} {
		must.NoError(t, (up{s, options, record}).finish(ctx))
		if err := (up{s, options, record}).saveFirst(ctx); err == nil || !pending() {
			t.Errorf("%s run: %v, to be saved later: %t", run, err, pending())
		}
	}
	options.FirstSnapshot = false
	if err := (up{s, options, record}).saveFirst(ctx); err != nil || pending() {
		t.Errorf("a run without a snapshot: %v, to be saved later: %t", err, pending())
	}
	if err := (up{s, options, record}).finish(ctx); err != nil || pending() {
		t.Errorf("a later run: %v, to be saved: %t", err, pending())
	}
}

// TestARestoreThatWasKilled has removed the hosts: `cluster up` finishes it, with the snapshot.
func TestARestoreThatWasKilled(t *testing.T) {
	s, options, _ := noHosts(t)
	ctx := t.Context()
	savedHost(t, s, "used")
	savedHost(t, s, "other")
	must.NoError(t, s.Cluster().Notes.Set(ctx, session.RestoringNote, "used"))
	_, status := Status(ctx, options.Options, "")
	for what, err := range map[string]error{
		"status": status,
		"save":   snapshot.Save(ctx, options.Options, "new", nil),
		"remove": snapshot.Remove(ctx, options.Options, "used"),
	} {
		t.Run(what, func(t *testing.T) {
			hasProblem(t, err, "cluster-unfinished", "cluster up --name "+s.Name+"` to finish")
		})
	}
	must.NoError(t, snapshot.Remove(ctx, options.Options, "other"))
	if kept, err := snapshot.Names(ctx, s); err != nil || !slices.Equal(kept, []string{"used"}) {
		t.Errorf("snapshots %v, %v", kept, err)
	}
}

// TestTheCauseOfMissingHosts: a first run that was killed leaves no settings and no snapshots.
func TestTheCauseOfMissingHosts(t *testing.T) {
	s, options, record := noHosts(t)
	ctx := t.Context()
	must.NoError(t, s.Cluster().Volumes.Make(ctx, s.Name+"-master-1-var-lib", nil))
	_, err := Status(ctx, options.Options, "")
	hasProblem(t, err, "cluster-unfinished", "cluster up --name "+s.Name+"` to finish")
	must.NoError(t, s.WriteRecord(ctx, &record))
	_, err = Status(ctx, options.Options, "")
	hasProblem(t, err, "cluster-hosts", "`kube-bootstrap cluster up --recreate --name "+s.Name+"`")
}
