package etcd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// fakeEngine is a Docker engine that runs one container: the etcd of a host.
type fakeEngine struct {
	*fakeCluster
	files host.Files
	ip    string
	name  string // of the member

	labels map[string]string // of the container; nil: there is none
	runs   bool
}

// start starts etcd as the member that its WAL names, or as the added one without a WAL.
func (e *fakeEngine) start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	own, wal := e.at(e.ip), DataDir+"/member/wal/0.wal"
	id, _ := e.files.Read(wal)
	e.runs = true
	switch {
	case own == nil, len(id) > 0 && string(id) != fmt.Sprint(own.ID):
		return // it ends, and the engine restarts it
	case len(id) == 0:
		must.NoError(e.t, e.files.Write(wal, []byte(fmt.Sprint(own.ID)), 0o600))
	}
	own.Name, own.ClientURLs = e.name, []string{clientURL(e.ip)}
	if e.up[e.ip] == nil {
		e.fakeCluster.start(e.ip)
	}
}

func (e *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/containers/create"):
		var asked struct{ Labels map[string]string }
		must.NoError(e.t, json.NewDecoder(r.Body).Decode(&asked))
		e.labels = asked.Labels
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"Id":"etcd"}`))
	case strings.HasSuffix(path, "/_ping"):
	case e.labels == nil:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message":"no such container"}`))
	case strings.HasSuffix(path, "/start"), strings.HasSuffix(path, "/restart"):
		e.start()
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		e.labels, e.runs = nil, false
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(path, "/json"):
		_ = json.NewEncoder(w).
			Encode(map[string]any{"Id": "etcd", "Name": "/etcd", "Config": map[string]any{"Labels": e.labels},
				"State": map[string]any{
					"Running": e.runs, "Status": "running", "StartedAt": time.Now(), "FinishedAt": time.Now(),
				}})
	}
}
