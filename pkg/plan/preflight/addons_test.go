package preflight

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
)

// TestAnInterruptEndsADownload: a server of manifests may accept a connection and never answer.
func TestAnInterruptEndsADownload(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(asked); <-ended }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	ctx, interrupt := context.WithCancel(t.Context())
	go func() { <-asked; interrupt() }()
	cfg := config.Default()
	cfg.Addons = []string{server.URL + "/addon.yaml#sha256:" + strings.Repeat("0", 64)}
	cfg.TimeoutForServices = 10 * time.Second // ends a download that goes on
	h := &local.Host{Files: host.Files{Root: t.TempDir()}, Config: cfg, Downloads: &local.Downloads{}}
	if err := addonProblems(ctx, request{h, local.ControlPlane, parts.New(h, local.ControlPlane)}); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("got %v", err)
	}
}
