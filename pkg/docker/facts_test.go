package docker

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestFactsAfterAReload: Docker 28.5 answers this after a SIGHUP, and knows everything but its pools.
func TestFactsAfterAReload(t *testing.T) {
	dir, err := os.MkdirTemp("", "kb-") // the path of a socket must be short
	must.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "d"))
	must.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.51")
		if strings.HasSuffix(r.URL.Path, "/info") {
			fmt.Fprint(w, `{"DockerRootDir": "/srv/docker", "DefaultAddressPools": [{"Base": "invalid Prefix", "Size": 24}]}`)
		}
	})}
	go func() { _ = server.Serve(listener) }() // it always ends with ErrServerClosed
	t.Cleanup(func() { server.Close() })
	info, err := Open(filepath.Join(dir, "d")).Facts(t.Context())
	if pools := info.DefaultAddressPools; err != nil || info.DockerRootDir != "/srv/docker" || len(pools) != 1 ||
		pools[0].Base.IsValid() || pools[0].Size != 24 {
		t.Errorf("%q, %v, %v", info.DockerRootDir, pools, err)
	}
}
