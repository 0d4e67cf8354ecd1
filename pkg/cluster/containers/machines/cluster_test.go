package machines

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestHostsOfAMaliciousEngine: the name of a host is a part of the paths of a dump.
func TestHostsOfAMaliciousEngine(t *testing.T) {
	for name, refused := range map[string]bool{
		"/kube-worker-1": false, "/../../root/.config": true, "/a/b": true, "/-x": true, "/..": true,
	} {
		engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Api-Version", "1.44")
			if strings.HasSuffix(r.URL.Path, "/containers/json") {
				host := container.Summary{Names: []string{name},
					Labels: map[string]string{docker.OurLabel: clusterOwner, docker.ClusterLabel: "kube"}}
				_ = json.NewEncoder(w).Encode([]container.Summary{host})
			}
		}))
		t.Cleanup(engine.Close)
		d, err := docker.Choice{Address: "tcp" + strings.TrimPrefix(engine.URL, "http")}.Open()
		must.NoError(t, err)
		if all, err := All(t.Context(), d); (err != nil) != refused || !refused && len(all) != 1 {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
}
