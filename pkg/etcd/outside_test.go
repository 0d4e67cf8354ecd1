package etcd

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTheClusterWithTheHighestRevisionCounts: after a recovery, two lost members still form the cluster of before.
func TestTheClusterWithTheHighestRevisionCounts(t *testing.T) {
	before, recovered := newCluster(t), newCluster(t)
	recovered.ca = before.ca
	before.add("one", "127.3.1.1", true)
	before.add("three", "127.3.1.3", true)
	recovered.add("four", "127.3.1.4", true)
	s := before.server("two", "127.3.1.2", "127.3.1.1", "127.3.1.4", "127.3.1.9")
	ran(t, s, before.add("two", "127.3.1.2", false), pair)
	for revision, outside := range map[int64]bool{6: false, 100_000_000: true} {
		recovered.revision = revision
		if err := s.Member.Outside(limited(t)); hasProblem(err, "etcd-removed") != outside {
			t.Errorf("at revision %d: %v", revision, err)
		}
	}
	if err := s.Stay().Apply(limited(t)); !hasProblem(err, "etcd-removed") || before.up["127.3.1.2"] != nil {
		t.Errorf("etcd starts: %v", err)
	}
	must.NoError(t, s.Stop(t.Context()))
	if _, err := s.Stay().Check(limited(t)); !hasProblem(err, "etcd-removed") {
		t.Errorf("the check of the agent finds %v", err)
	}
	if diff, err := s.Join().Check(limited(t)); err != nil || len(diff) != 1 {
		t.Errorf("the check of an administrator finds %v, %v", diff, err)
	}
}

func TestAFormerControlPlaneStaysInTheList(t *testing.T) {
	const other = `{"name":"two","ip":"10.0.0.2"}`
	if got := FormerEntry(other, "one"); got != `{"name":"two","ip":"10.0.0.2","former":true}` {
		t.Errorf("the entry of another host is %s", got)
	}
	for _, value := range []string{`{"name":"one","ip":"10.0.0.1"}`, "a lock"} {
		if got := FormerEntry(value, "one"); got != "" {
			t.Errorf("%s becomes %s", value, got)
		}
	}
}
