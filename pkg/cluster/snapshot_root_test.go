//go:build root

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

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// savedHost makes a snapshot of one host, master-1: its note with more fields, and its volume,
// but not its image.
func savedHost(t *testing.T, c containers.Cluster, name string, more ...string) (image string) {
	t.Helper()
	machine := c.Name + "-master-1"
	note := fmt.Sprintf(`{"format": 1, "snapshot": {"name": %q},
		"machines": [{"Name": %q, "Cluster": %q, "Volumes": {"/var/lib": "%s-var-lib"}}]%s}`, name, machine, c.Name, machine, strings.Join(more, ""))
	must.NoError(t, errors.Join(c.Session.Notes().Set(t.Context(), "snapshot."+name, note),
		c.Volumes.Make(t.Context(), machine+"-var-lib.snapshot."+name,
			map[string]string{"kube-bootstrap.dev/snapshot": name})))
	return "kube-bootstrap/snapshot:" + machine + "." + name
}

// importEmpty makes an image of the cluster without files.
func importEmpty(t *testing.T, c containers.Cluster, ref string) {
	t.Helper()
	must.NoError(t, c.Engine.Images().Import(t.Context(), ref, bytes.NewReader(make([]byte, 1024)),
		"LABEL "+docker.ClusterLabel+"="+c.Name))
}

// hasProblem fails the test unless err is the problem with this name and remedy.
func hasProblem(t *testing.T, err error, name, remedy string) {
	t.Helper()
	if found := step.Problems(err); len(found) != 1 || found[0].Name != name ||
		!strings.Contains(found[0].Remedy, remedy) {
		t.Errorf("got %v, want %s with the remedy %s", err, name, remedy)
	}
}

// TestAnIncompleteSnapshotIsNotRestored: `docker system prune -a` has removed the image of a
// snapshot. The hosts must stay.
func TestAnIncompleteSnapshotIsNotRestored(t *testing.T) {
	c, options, record := noHosts(t)
	ctx := t.Context()
	image := savedHost(t, c, "used")
	must.NoError(t, errors.Join(c.Session.WriteRecord(ctx, &record),
		c.Volumes.Make(ctx, c.Name+"-master-1-var-lib", nil)))
	err := RestoreSnapshot(ctx, options, "used", nil)
	hasProblem(t, err, "snapshot-incomplete", "another snapshot")
	if !strings.Contains(fmt.Sprint(err), "the Docker engine lacks "+image+"; ") {
		t.Errorf("%v: want the image %s only", err, image)
	}
	notes, err := c.Session.Notes().All(ctx)
	must.NoError(t, err)
	if left := strings.Fields(volumesLeft(t, c)); notes[session.RestoringNote] != "" ||
		notes[session.RecordNote] == "" || !slices.Contains(left, "-master-1-var-lib") {
		t.Errorf("the cluster has changed: notes %v, volumes %v", notes, left)
	}
}

// TestAnImageInUseOutlivesItsSnapshot: the hosts were restored from a snapshot that is then removed.
func TestAnImageInUseOutlivesItsSnapshot(t *testing.T) {
	c, options, _ := noHosts(t)
	ctx := t.Context()
	used, other := savedHost(t, c, "used"), savedHost(t, c, "other")
	importEmpty(t, c, used)
	importEmpty(t, c, other)
	restored, err := c.Engine.ContainerCreate(ctx, client.ContainerCreateOptions{Config: &container.Config{
		Image: used, Cmd: []string{"/init"},
		Labels: map[string]string{docker.OurLabel: "cluster", docker.ClusterLabel: c.Name},
	}})
	must.NoError(t, err)
	for _, name := range []string{"used", "other"} {
		if err := snapshot.Remove(ctx, options.Selection, name); err != nil {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	if left, err := c.Images(ctx); err != nil || !slices.Equal(left, []string{used}) {
		t.Errorf("images %v, %v, want %s", left, err, used)
	}
	must.NoError(t, c.Engine.Remove(ctx, restored.ID))
	hasProblem(t, snapshot.Remove(ctx, options.Selection, "none"), "snapshot-missing", "save none")
	if left, err := c.Images(ctx); err != nil || len(left) > 0 {
		t.Errorf("without the host: images %v, %v", left, err)
	}
}

// TestOneRunAtATime: another run, such as `cluster up`, changes the cluster.
func TestOneRunAtATime(t *testing.T) {
	c, options, _ := noHosts(t)
	ctx := t.Context()
	savedHost(t, c, "used")
	release, err := c.Session.Hold(ctx, session.ClusterLock)
	must.NoError(t, err)
	defer release()
	for what, err := range map[string]error{
		"save":    snapshot.Save(ctx, options.Selection, "other", nil),
		"restore": RestoreSnapshot(ctx, options, "used", nil),
		"remove":  snapshot.Remove(ctx, options.Selection, "used"),
	} {
		if !errors.Is(err, host.ErrLocked) {
			t.Errorf("%s: %v, want %v", what, err, host.ErrLocked)
		}
	}
	if kept, err := snapshot.Names(ctx, c.Session); err != nil || !slices.Equal(kept, []string{"used"}) {
		t.Errorf("snapshots %v, %v", kept, err)
	}
}

// TestARestoreBringsBackTheComponents, so that `cluster up` and `node add` do not run those of a
// later `reup`. The restores fail, because the snapshots have no subnet and no shell.
func TestARestoreBringsBackTheComponents(t *testing.T) {
	c, options, _ := noHosts(t)
	ctx := t.Context()
	const own = `{"kubelet":"v1.37.2+a"}`
	importEmpty(t, c, savedHost(t, c, "release"))
	importEmpty(t, c, savedHost(t, c, "checkout", `, "components": `+strconv.Quote(own)))
	for _, name := range []string{"checkout", "release"} {
		must.NoError(t, c.Session.Notes().Set(ctx, session.ComponentsNote, `{"kubelet":"v1.37.2+b"}`))
		if err := RestoreSnapshot(ctx, options, name, nil); err == nil {
			t.Errorf("%s was restored", name)
		}
		notes, err := c.Session.Notes().All(ctx)
		want := map[string]string{"checkout": own}[name]
		if err != nil || notes[session.RestoringNote] != name || notes[session.ComponentsNote] != want {
			t.Errorf("%s: notes %v, %v, want components %q", name, notes, err, want)
		}
	}
	if kept, err := snapshot.Components(ctx, c.Session); err != nil || !slices.Equal(kept, []string{own}) {
		t.Errorf("components of snapshots %q, %v", kept, err)
	}
}

// TestTheFirstSnapshotIsRetried: the first run has recorded that the cluster is up, and could not
// save the snapshot, because the hosts are gone.
func TestTheFirstSnapshotIsRetried(t *testing.T) {
	c, options, record := noHosts(t)
	ctx := t.Context()
	options.FirstSnapshot = true
	pending := func() bool {
		notes, err := c.Session.Notes().All(ctx)
		must.NoError(t, err)
		return notes[session.FirstNote] != ""
	}
	for _, run := range []string{"first", "second"} {
		must.NoError(t, (up{c, options, record}).finish(ctx))
		if err := (up{c, options, record}).saveFirst(ctx); err == nil || !pending() {
			t.Errorf("%s run: %v, to be saved later: %t", run, err, pending())
		}
	}
	options.FirstSnapshot = false
	if err := (up{c, options, record}).saveFirst(ctx); err != nil || pending() {
		t.Errorf("a run without a snapshot: %v, to be saved later: %t", err, pending())
	}
	if err := (up{c, options, record}).finish(ctx); err != nil || pending() {
		t.Errorf("a later run: %v, to be saved: %t", err, pending())
	}
}

// TestARestoreThatWasKilled has removed the hosts: `cluster up` finishes it, with the snapshot.
func TestARestoreThatWasKilled(t *testing.T) {
	c, options, _ := noHosts(t)
	ctx := t.Context()
	savedHost(t, c, "used")
	savedHost(t, c, "other")
	must.NoError(t, c.Session.Notes().Set(ctx, session.RestoringNote, "used"))
	_, status := Status(ctx, options.Selection, "")
	for what, err := range map[string]error{
		"status": status,
		"save":   snapshot.Save(ctx, options.Selection, "new", nil),
		"remove": snapshot.Remove(ctx, options.Selection, "used"),
	} {
		t.Run(what, func(t *testing.T) {
			hasProblem(t, err, "cluster-unfinished", "cluster up --name "+c.Name+"` to finish")
		})
	}
	must.NoError(t, snapshot.Remove(ctx, options.Selection, "other"))
	if kept, err := snapshot.Names(ctx, c.Session); err != nil || !slices.Equal(kept, []string{"used"}) {
		t.Errorf("snapshots %v, %v", kept, err)
	}
}

// TestTheCauseOfMissingHosts: a first run that was killed leaves no settings and no snapshots.
func TestTheCauseOfMissingHosts(t *testing.T) {
	c, options, record := noHosts(t)
	ctx := t.Context()
	must.NoError(t, c.Volumes.Make(ctx, c.Name+"-master-1-var-lib", nil))
	_, err := Status(ctx, options.Selection, "")
	hasProblem(t, err, "cluster-unfinished", "cluster up --name "+c.Name+"` to finish")
	must.NoError(t, c.Session.WriteRecord(ctx, &record))
	_, err = Status(ctx, options.Selection, "")
	hasProblem(t, err, "cluster-hosts", "`kube-bootstrap cluster up --recreate --name "+c.Name+"`")
}
