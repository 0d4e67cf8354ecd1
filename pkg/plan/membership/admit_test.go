package membership

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestARebuiltControlPlaneIsAcceptedAgain: a run in which its record could not be deleted
// is completed by the next one.
func TestARebuiltControlPlaneIsAcceptedAgain(t *testing.T) {
	e, client := newEtcd(t)
	network := networkOf(config.Default())
	e.put("/kube-bootstrap/removed/two", `{"until":"`+time.Now().Add(time.Hour).Format(time.RFC3339)+`"}`)
	e.fails = true
	if err := takePlace(t.Context(), "two", network, client); err == nil {
		t.Fatal("the record was not deleted, and nobody was told")
	}
	e.fails = false
	if diff, err := missingPlace(t.Context(), "two", network, client); len(diff) == 0 || err != nil {
		t.Fatalf("got %v, %v", diff, err)
	}
	must.NoError(t, takePlace(t.Context(), "two", network, client))
	removed, err := etcd.ReadRemoved(t.Context(), client, "two")
	must.NoError(t, err)
	if diff, err := missingPlace(t.Context(), "two", network, client); removed != nil || len(diff) > 0 || err != nil {
		t.Errorf("refused %v, %v, %v", removed, diff, err)
	}
}

// TestNoControlPlaneHasTheNameOfACompromisedHost: the API servers accept all certificates of a
// control plane's kubelet.
func TestNoControlPlaneHasTheNameOfACompromisedHost(t *testing.T) {
	_, client := newEtcd(t)
	network := networkOf(config.Default())
	must.NoError(t, noteRemoved(t.Context(), client, "w1", true))
	must.NoError(t, noteRemoved(t.Context(), client, "w1", false)) // a later worker of this name has left
	_, err := missingPlace(t.Context(), "w1", network, client)
	if found := step.Problems(err); len(found) != 1 || found[0].Name != "name-compromised" {
		t.Fatalf("got %v", err)
	}
	must.NoError(t, noteRemoved(t.Context(), client, "w2", false))
	if _, err := missingPlace(t.Context(), "w2", network, client); err != nil {
		t.Errorf("the name of a host that has left: %v", err)
	}
}

// TestTheUsersOfAWorkerDoNotGrow: it can request any number of certificates.
func TestTheUsersOfAWorkerDoNotGrow(t *testing.T) {
	e, client := newEtcd(t)
	network := networkOf(config.Default())
	must.NoError(t, admit(t.Context(), network, client, "two", etcd.HostUser("two")))
	must.NoError(t, admitWorker(t.Context(), network, client, "w2", etcd.CertificateUser("w2", "00000001")))
	for i := range 50 {
		must.NoError(t, admitWorker(t.Context(), network, client, "w1", etcd.CertificateUser("w1", fmt.Sprintf("%08x", i))))
	}
	// The clock of another control plane is late.
	must.NoError(t, admitWorker(t.Context(), network, client, "w1", etcd.CertificateUser("w1", "00000020")))
	want := []string{"flannel:two", "flannel:w1:00000020", "flannel:w1:00000030", "flannel:w1:00000031", "flannel:w2:00000001"}
	if got := slices.Sorted(maps.Keys(e.users)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
