package etcd

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// TestTheReasonOfEtcd reads logs that etcd 3.7 wrote.
func TestTheReasonOfEtcd(t *testing.T) {
	for name, c := range map[string]struct{ log, problem, says string }{
		"a damaged WAL": {`{"level":"info","ts":"2026-11-22T12:00:00Z","msg":"starting an etcd server"}
{"level":"warn","ts":"2026-11-22T12:00:00Z","msg":"failed to repair WAL, cannot repair"}
{"level":"fatal","ts":"2026-11-22T12:00:00Z","caller":"storage/storage.go:95","msg":"failed to read WAL, cannot be repaired","error":"wal: crc mismatch"}
`, "etcd-data", "failed to read WAL, cannot be repaired: wal: crc mismatch"},
		"a panic": {`{"level":"panic","ts":"2026-11-22T12:00:00Z","msg":"failed to open database","error":"invalid database"}
panic: failed to open database

goroutine 1 [running]:
`, "etcd-data", "failed to open database: invalid database"},
		"a full disk": {`{"level":"fatal","ts":"2026-11-22T12:00:00Z","msg":"discovery failed","error":"write /var/lib/etcd/member/wal/0.tmp: no space left on device"}` + "\n", "etcd-disk", "no space left on device"},
		"a port":      {`{"level":"error","msg":"creating peer listener failed","error":"listen tcp 10.0.0.1:2380: bind: address already in use"}` + "\n", "etcd-start", "address already in use"},
		"nothing":     {`{"level":"info","msg":"ready to serve client requests"}` + "\nnot JSON\n", "", ""},
	} {
		problems := step.Problems(testMember(t).problemIn(c.log))
		switch {
		case c.problem == "" && len(problems) == 0:
		case len(problems) != 1 || problems[0].Name != c.problem || !strings.Contains(problems[0].Text, c.says) || problems[0].Remedy == "":
			t.Errorf("%s: got %v", name, problems)
		}
	}
}
