package membership

import (
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestARebuiltControlPlaneIsAcceptedAgain: a run in which its record could not be deleted
// is completed by the next one.
func TestARebuiltControlPlaneIsAcceptedAgain(t *testing.T) {
	e, client := newEtcd(t)
	h := &local.Host{Config: config.Default()}
	h.Config.HostName = "two"
	e.put("/kube-bootstrap/removed/two", `{"until":"`+time.Now().Add(time.Hour).Format(time.RFC3339)+`"}`)
	e.fails = true
	if err := takePlace(t.Context(), h, client); err == nil {
		t.Fatal("the record was not deleted, and nobody was told")
	}
	e.fails = false
	if diff, err := missingPlace(t.Context(), h, client); len(diff) == 0 || err != nil {
		t.Fatalf("got %v, %v", diff, err)
	}
	must.NoError(t, takePlace(t.Context(), h, client))
	refused, err := etcd.WasRemoved(t.Context(), client, "two")
	must.NoError(t, err)
	if diff, err := missingPlace(t.Context(), h, client); refused || len(diff) > 0 || err != nil {
		t.Errorf("refused %t, %v, %v", refused, diff, err)
	}
}
