package localcluster

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
)

// A step without an answer is UNKNOWN, not MISSING.
func TestWhatGaveNoAnswerIsUnknownInAClusterToo(t *testing.T) {
	for report, want := range map[string]string{
		`{"upToDate": true, "steps": [{"step": "start etcd", "upToDate": true}]}`: "1 up to date",
		`{"steps": [{"step": "start etcd", "missing": ["run etcd"]},
			{"step": "give etcd its users", "error": "no answer within 10s"}]}`: "missing: start etcd; unknown: give etcd its users",
		`{"steps": [{"step": "give etcd its users", "error": "no answer within 10s"}]}`: "unknown: give etcd its users",
		`{}`: "none",
	} {
		host := clusterHost{HostStatus: remote.HostStatus{Report: []byte(report)}}
		if got := host.steps(); got != want {
			t.Errorf("%s: got %q, want %q", report, got, want)
		}
	}
}
