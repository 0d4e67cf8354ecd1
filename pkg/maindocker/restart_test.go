package maindocker

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const theContainer = "c0ffee"

// fakeHost is a host with one container of its Docker. Its Docker serves the socket
// while the service runs. onStop is called when a stop of Docker or of a container begins.
type fakeHost struct {
	initsystem.Units
	init        string
	liveRestore bool
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
	h.daemon = &http.Server{Handler: h}
	go func() { _ = h.daemon.Serve(listener) }() // it always ends with ErrServerClosed
	return context.Cause(ctx)
}

func (h *fakeHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	w.Header().Set("Api-Version", "1.44")
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(path, "/_ping"):
	case strings.HasSuffix(path, "/info"):
		_ = json.NewEncoder(w).Encode(map[string]any{"LiveRestoreEnabled": h.liveRestore})
	case strings.HasSuffix(path, "/containers/json"):
		list := []map[string]string{}
		if h.is(theContainer) {
			list = append(list, map[string]string{"Id": theContainer})
		}
		_ = json.NewEncoder(w).Encode(list)
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
	h := &fakeHost{init: init, liveRestore: liveRestore, socket: filepath.Join(dir, "d"), onStop: func() {}, running: map[string]bool{theContainer: true}}
	must.NoError(t, h.Restart(t.Context(), "docker"))
	t.Cleanup(func() { h.daemon.Close() })
	h.set("docker.socket", init == "systemd")
	return h, Daemon{Files: host.Files{Root: t.TempDir()}, Units: h, Engine: func() *docker.Engine { return docker.Open(h.socket) }}
}

// TestDockerRunsAgain: also after a run that was cancelled while it stopped Docker or a
// container, or whose change failed.
func TestDockerRunsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		init                string
		liveRestore, cancel bool
	}{
		"systemd": {init: "systemd"}, "systemd, cancelled": {init: "systemd", cancel: true},
		"live-restore": {init: "systemd", liveRestore: true}, "live-restore, cancelled": {init: "systemd", liveRestore: true, cancel: true},
		"init scripts": {init: "sysv"}, "init scripts, cancelled": {init: "sysv", cancel: true},
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
			if h.daemon == nil || h.is("docker.socket") != (c.init == "systemd") || !h.is(theContainer) || isPending(d.Files) {
				t.Errorf("Docker does not run as before: %v, pending: %t", h.running, isPending(d.Files))
			}
		})
	}
}
