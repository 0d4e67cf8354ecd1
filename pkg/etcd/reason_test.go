package etcd

import (
	"os"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// TestTheReasonOfEtcd reads the logs of an etcd 3.7.0 that did not start.
func TestTheReasonOfEtcd(t *testing.T) {
	for file, c := range map[string]struct{ problem, says string }{
		"damaged-wal.log": {"etcd-data", "its WAL was damaged"},
		"full-disk.log":   {"etcd-disk", "failed to create WAL: no space left on device"},
		"bad-value.log":   {"etcd-start", `invalid value "abc" for flag -snapshot-count`},
		"bad-flags.log":   {"etcd-start", "--election-timeout[1000ms] should be at least as 5 times"},
		"bad-entry.log":   {"etcd-data", "proto: cannot parse invalid wire-format data"},
		"torn-wal.log":    {"etcd-data", "failed to repair WAL"}, // where the disk has space
		"taken-port.log":  {"etcd-start", "listen tcp 10.233.0.2:2380: bind: address already in use"},
	} {
		log, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		problems := step.Problems(MemberContainer{}.problemIn(string(log)))
		if len(problems) != 1 || problems[0].Name != c.problem || !strings.Contains(problems[0].Text, c.says) ||
			problems[0].Remedy == "" {
			t.Errorf("%s: got %v", file, problems)
		}
	}
	if err := (MemberContainer{}).
		problemIn("{\"level\":\"info\",\"msg\":\"ready to serve client requests\"}\nnot JSON\n"); err != nil {
		t.Errorf("an etcd that runs: %v", err)
	}
}

// TestAWALThatHasLostEntries reads the log of an etcd 3.7.0 whose WAL was cut after
// its entry 34.
func TestAWALThatHasLostEntries(t *testing.T) {
	log, err := os.ReadFile("testdata/short-wal.log")
	if err != nil {
		t.Fatal(err)
	}
	const failed = "failed to publish local member"
	for what, c := range map[string]struct {
		log  string
		lost bool
	}{
		"cut":               {string(log), true},
		"cut, just started": {string(log[:strings.Index(string(log), failed)]), false},
		"behind, but writes": {string(log) + `{"level":"info","msg":"published local member to cluster through raft"}`,
			false},
		"without a leader": {strings.ReplaceAll(string(log), "elected leader", "is a candidate"), false},
		"not behind":       {strings.ReplaceAll(string(log), `"commit-index":34`, `"commit-index":2097`), false},
		"empty":            {"", false},
	} {
		if wal, database, lost := lostEntries(c.log); lost != c.lost || lost && (wal != 34 || database != 2097) {
			t.Errorf("%s: %v, with entries %d and %d", what, lost, wal, database)
		}
	}
}
