package membership

import (
	"context"
	"fmt"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// networkOf returns the pod network of a host with these settings.
func networkOf(cfg config.Config) parts.PodNetwork {
	return parts.New(&local.Host{Config: cfg}, local.Worker).Network
}

// TestASecondForgetCompletesTheFirst: the node of the host is gone, so that only its place
// in etcd shows that it was in the cluster.
func TestASecondForgetCompletesTheFirst(t *testing.T) {
	e, client := newEtcd(t)
	network := networkOf(config.Default())
	must.NoError(t, admit(t.Context(), network, client, "w1", etcd.CertificateUser("w1", "1a2b")))
	bans, banned := errDown, 0
	ban := func(context.Context, *clientv3.Client, string) error {
		banned++
		return bans
	}
	remove := func() error { return removeRights(t.Context(), client, "w1", ban) }
	known := func(what string) {
		t.Helper()
		if err := hasPlace(t.Context(), client, "w1"); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if err := remove(); err == nil {
		t.Fatal("without a ban, it succeeded")
	}
	known("not banned")
	bans, e.fails = nil, true
	if err := remove(); err == nil {
		t.Fatal("the subnet is reserved, and it succeeded")
	}
	known("banned, without a user, with a subnet")
	e.fails = false
	must.NoError(t, remove())
	found := step.Problems(hasPlace(t.Context(), client, "w1"))
	if len(found) != 1 || found[0].Name != "node-unknown" || banned != 3 || len(e.values) > 0 || len(e.users) > 0 {
		t.Errorf("%v after %d bans: %v, %v", found, banned, e.values, e.users)
	}
}

// TestAcceptedCertificatesDoNotGrow: a worker that returned can request any number of
// certificates.
func TestAcceptedCertificatesDoNotGrow(t *testing.T) {
	issued := []join.NodeCertificate{{Node: "back", SHA256: "first"}, {Node: "other", SHA256: "x"}, {Node: "back", SHA256: "stranger", By: "unknown"}}
	now := accepted("back", nil, issued)
	if !slices.Equal(now, []string{"first"}) {
		t.Fatalf("with the token: %q", now)
	}
	issued = append(issued, join.NodeCertificate{Node: "back", SHA256: "second", By: "first"}, join.NodeCertificate{Node: "back", SHA256: "third", By: "second"})
	if now = accepted("back", now, issued); !slices.Equal(now, []string{"second", "third"}) {
		t.Errorf("after two renewals: %q", now)
	}
	for i := range 1300 {
		issued = append(issued, join.NodeCertificate{Node: "back", SHA256: fmt.Sprint(i), By: "third"})
	}
	now = accepted("back", now, issued)
	if again := accepted("back", now, issued); len(now) > controlplane.MostAccepted || !slices.Contains(now, "1299") || !slices.Equal(again, now) {
		t.Errorf("after 1300 requests: %q, then %q", now, again)
	}
	issued = nil
	for i := range 1300 {
		issued = append(issued, join.NodeCertificate{Node: "back", SHA256: fmt.Sprint(i)})
	}
	now = accepted("back", nil, issued)
	if again := accepted("back", now, issued); len(now) != controlplane.MostAccepted || !slices.Contains(now, "1299") || !slices.Equal(again, now) {
		t.Errorf("after 1300 requests with a token: %q, then %q", now, again)
	}
}
