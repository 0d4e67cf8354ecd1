package maindocker

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const theContainer = "c0ffee"

// fakeHost is a host with one container of its Docker. Its Docker serves the socket
// while the service runs. onStop is called when a stop of Docker or of a container begins.
type fakeHost struct {
	initsystem.Units
	init        string
	liveRestore bool
	broken      bool // the container does not start
	info        map[string]any
	socket      string
	onStop      func()

	mu      sync.Mutex
	daemon  *http.Server    // nil: stopped
	running map[string]bool // services and containers
}

func (h *fakeHost) Init() string { return h.init }

func (h *fakeHost) Active(_ context.Context, unit string) (bool, error) { return h.is(unit), nil }

func (h *fakeHost) is(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running[name]
}

func (h *fakeHost) set(name string, running bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[name] = running
}

// Stop completes although ctx ends, as with systemd.
func (h *fakeHost) Stop(ctx context.Context, unit string) error {
	h.onStop()
	h.set(unit, false)
	if unit == "docker" && h.daemon != nil {
		h.daemon.Close()
		h.daemon = nil
		if !h.liveRestore {
			h.set(theContainer, false)
		}
	}
	return context.Cause(ctx)
}

func (h *fakeHost) Restart(ctx context.Context, unit string) error {
	h.set(unit, true)
	if unit != "docker" || h.daemon != nil {
		return context.Cause(ctx)
	}
	listener, err := net.Listen("unix", h.socket)
	if err != nil {
		return err
	}
	daemon := &http.Server{Handler: h}
	h.daemon = daemon
	go func() { _ = daemon.Serve(listener) }() // it always ends with ErrServerClosed
	return context.Cause(ctx)
}

func (h *fakeHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	w.Header().Set("Api-Version", "1.44")
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(path, "/_ping"):
	case strings.HasSuffix(path, "/info"):
		info := map[string]any{"LiveRestoreEnabled": h.liveRestore}
		maps.Copy(info, h.info)
		_ = json.NewEncoder(w).Encode(info)
	case strings.HasSuffix(path, "/containers/json"):
		list := []map[string]any{}
		if h.is(theContainer) {
			list = append(list, map[string]any{"Id": theContainer})
		}
		_ = json.NewEncoder(w).Encode(list)
	case strings.HasSuffix(path, theContainer+"/json"):
		_ = json.NewEncoder(w).Encode(map[string]any{
			"Id": theContainer, "Name": "/web", "State": map[string]any{"Running": true},
			"HostConfig": map[string]any{},
		})
	case strings.HasSuffix(path, theContainer+"/start") && h.broken:
		http.Error(w, `{"message": "its mount is gone"}`, http.StatusBadRequest)
	case strings.HasSuffix(path, theContainer+"/start"):
		h.set(theContainer, true)
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(path, theContainer+"/stop"):
		h.onStop()
		h.set(theContainer, false)
		w.WriteHeader(http.StatusNoContent)
	default:
		http.NotFound(w, r)
	}
}

func startedHost(t *testing.T, init string, liveRestore bool) (*fakeHost, Daemon) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kb-") // the path of a socket must be short
	must.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &fakeHost{
		init: init, liveRestore: liveRestore, socket: filepath.Join(dir, "d"), onStop: func() {},
		running: map[string]bool{theContainer: true},
	}
	must.NoError(t, h.Restart(t.Context(), "docker"))
	t.Cleanup(func() {
		if h.daemon != nil {
			h.daemon.Close()
		}
	})
	h.set("docker.socket", init == "systemd")
	return h, Daemon{
		Files: host.Files{Root: t.TempDir()}, Units: h, Engine: func() *docker.Engine { return docker.Open(h.socket) },
	}
}

// TestFinish: the agent brings back what a killed run has stopped, also if only a container was
// stopped. It leaves a Docker of which there is no record.
func TestFinish(t *testing.T) {
	for name, stop := range map[string]bool{"Docker is stopped": true, "only the container is": false} {
		t.Run(name, func(t *testing.T) {
			h, d := startedHost(t, "systemd", false)
			_, running, err := d.remember(t.Context(), false)
			must.NoError(t, err)
			must.NoError(t, d.stopContainers(t.Context(), running))
			h.set(theContainer, false)
			if stop {
				must.NoError(t, d.stop(t.Context()))
			}
			must.NoError(t, d.Finish(t.Context()))
			if h.daemon == nil || !h.is("docker.socket") || !h.is(theContainer) || Interrupted(d.Files) {
				t.Errorf("Docker does not run as before: %v, interrupted: %t", h.running, Interrupted(d.Files))
			}
		})
	}
	h, d := startedHost(t, "systemd", false)
	must.NoError(t, d.stop(t.Context()))
	must.NoError(t, d.Finish(t.Context()))
	if h.daemon != nil || h.is("docker.socket") {
		t.Error("it starts a Docker that the administrator has stopped")
	}
}

// TestAContainerThatDoesNotStartIsNamed: it does not fail the run.
func TestAContainerThatDoesNotStartIsNamed(t *testing.T) {
	h, d := startedHost(t, "systemd", false)
	h.broken = true
	var left []string
	must.NoError(t, d.WhileStopped(step.WithLeft(t.Context(), func(what string) {
		left = append(left, what)
	}), func() error { return nil }))
	if len(left) != 1 || !strings.Contains(left[0], "container web: it does not run any more: ") ||
		!strings.Contains(left[0], "`docker start web`") || Interrupted(d.Files) {
		t.Errorf("reported %q, interrupted: %t", left, Interrupted(d.Files))
	}
}

// TestDaemonJSONAfterAFailedTurndown: the address for one start does not stay in it. The record of
// the original does, for the next turndown.
func TestDaemonJSONAfterAFailedTurndown(t *testing.T) {
	files := movedHost(t, `{"debug": true}`)
	data, err := settingsBefore(t.Context(), files)
	must.NoError(t, err)
	must.NoError(t, writeSettings(files, data))
	must.NoError(t, withdrawAddress(files, data))
	now, err := readSettings(files)
	must.NoError(t, err)
	if is, err := moved(files); len(now) != 1 || now["debug"] != true || !is || err != nil {
		t.Errorf("%v, moved: %t, %v", now, is, err)
	}
	again, err := settingsBefore(t.Context(), files)
	if err != nil || string(again) != string(data) {
		t.Errorf("the next turndown writes %s, not %s (%v)", again, data, err)
	}
}

// TestDockerRunsAgain: also after a run that was cancelled while it stopped Docker or a
// container, or whose change failed.
func TestDockerRunsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		init                string
		liveRestore, cancel bool
	}{
		"systemd": {init: "systemd"}, "systemd, cancelled": {init: "systemd", cancel: true},
		"live-restore":            {init: "systemd", liveRestore: true},
		"live-restore, cancelled": {init: "systemd", liveRestore: true, cancel: true},
		"init scripts":            {init: "sysv"}, "init scripts, cancelled": {init: "sysv", cancel: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := startedHost(t, c.init, c.liveRestore)
			failure := errors.New("the reason")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if c.cancel {
				h.onStop = func() { cancel(failure) }
			}
			changed := false
			err := d.WhileStopped(ctx, func() error {
				changed = true
				if h.is("docker") || h.is(theContainer) {
					t.Error("changed while Docker or a container runs")
				}
				return failure
			})
			if !errors.Is(err, failure) || errors.As(err, new(startError)) || changed == c.cancel {
				t.Errorf("changed: %t, %v", changed, err)
			}
			if h.daemon == nil || h.is("docker.socket") != (c.init == "systemd") || !h.is(theContainer) ||
				Interrupted(d.Files) {
				t.Errorf("Docker does not run as before: %v, pending: %t", h.running, Interrupted(d.Files))
			}
		})
	}
}
