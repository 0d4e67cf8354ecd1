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
