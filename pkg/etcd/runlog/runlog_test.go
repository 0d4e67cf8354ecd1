package runlog

import (
	"os"
	"strings"
	"testing"
)

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
		if wal, database, lost := LostEntries(c.log); lost != c.lost || lost && (wal != 34 || database != 2097) {
			t.Errorf("%s: %v, with entries %d and %d", what, lost, wal, database)
		}
	}
}
