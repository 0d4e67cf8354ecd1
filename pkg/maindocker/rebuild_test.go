package maindocker

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// A rebuild that was cut short ends with the owner's own setting, whatever it
// was, and twice does no harm.
func TestRebuildLeavesLiveRestoreAsItWas(t *testing.T) {
	for _, owner := range []string{"{}", `{"live-restore": false}`, `{"live-restore": true, "bip": "10.1.7.1/24"}`} {
		files := host.Files{Root: t.TempDir()}
		stopped := func() *docker.Engine { return docker.Open(filepath.Join(files.Root, "none.sock")) }
		d := Daemon{Files: files, Engine: stopped}
		must.NoError(t, files.Write(daemonJSON, []byte(owner), 0o644))
		want, err := readSettings(files)
		must.NoError(t, err)
		for range 2 { // the second is the next run
			must.NoError(t, d.beginRebuild(t.Context()))
		}
		if now, err := readSettings(files); err != nil || now[liveRestore] != true {
			t.Errorf("%s: during the restart: %v, %v", owner, now, err)
		}
		for range 2 {
			must.NoError(t, d.endRebuild(t.Context()))
		}
		now, err := readSettings(files)
		if diff := differences(now, want); err != nil || len(diff) > 0 || len(now) != len(want) ||
			files.Exists(rebuildFile) {
			t.Errorf("%s: afterwards %v, %v", owner, now, err)
		}
	}
}

// TestRebuildEndsWithADockerThatHangs: systemd accepts connections for a dockerd that hangs at
// its start. An interrupted rebuild ends nevertheless, and the next run finishes it.
func TestRebuildEndsWithADockerThatHangs(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	socket := filepath.Join(files.Root, "docker.sock")
	silent, err := net.Listen("unix", socket) // nobody accepts
	must.NoError(t, err)
	defer silent.Close()
	d := Daemon{Files: files, Engine: func() *docker.Engine { return docker.Open(socket) }}
	must.NoError(t, files.Write(rebuildFile, nil, 0o600))
	interrupted, cancel := context.WithCancel(step.WithLimit(t.Context(), 50*time.Millisecond))
	cancel()
	if err := d.endRebuild(interrupted); !step.IsUnanswered(err) || !files.Exists(rebuildFile) {
		t.Errorf("got %v; the next run finishes it: %t", err, files.Exists(rebuildFile))
	}
}

// TestRebuildInASwarm: Docker 28.5 would accept live-restore, and then fail to start.
func TestRebuildInASwarm(t *testing.T) {
	h, d := startedHost(t, "systemd", false)
	h.info = map[string]any{"Swarm": map[string]any{"LocalNodeState": "active"}}
	stops := 0
	h.onStop = func() {
		stops++
		if now, err := readSettings(d.Files); err != nil || now[liveRestore] != nil || d.Files.Exists(rebuildFile) {
			t.Errorf("daemon.json of the restart: %v, %v", now, err)
		}
	}
	must.NoError(t, d.rebuild(t.Context()))
	if stops == 0 || h.daemon == nil || !h.is(theContainer) || Restarting(d.Files) {
		t.Errorf("stopped %d times, then %v", stops, h.running)
	}
}
