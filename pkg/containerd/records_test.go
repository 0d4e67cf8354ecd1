package containerd

import (
	"reflect"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// TestDamagedRecords: what is no value of a record is never used.
func TestDamagedRecords(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	for _, path := range []string{beforeRecord.Path, otherRecord.Path} {
		for _, content := range []string{"", "{", "null", "{}", "[]", "\x00\xff", `{"images":[],"paths":["/etc"],"dirs":{"/etc":[]}}`} {
			if err := files.Write(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, before := beforeRecord.Read(files)
			_, other := otherRecord.Read(files)
			if !host.Lost(before) || !host.Lost(other) {
				t.Errorf("%s with %q: %v, %v", path, content, before, other)
			}
		}
	}
}

// TestTheRecordOfTheConfig: without it, our settings are taken out. A run makes
// the record again.
func TestTheRecordOfTheConfig(t *testing.T) {
	owner := "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.cni]\nconf_dir = '/etc/cni/net.d'\n"
	for name, c := range map[string]struct{ owner, record string }{
		"missing": {owner, ""}, "damaged": {owner, "{{"}, "no value": {owner, "{}"}, "of a host without a config": {"", "{{"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Runtime{Files: host.Files{Root: t.TempDir()}, SandboxImage: pause}
			ours, _, err := mergeConfig([]byte(c.owner), 1, r.wanted())
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Files.Replace(configPath, ours, 0o644); err != nil {
				t.Fatal(err)
			}
			record := host.StateDir + "/original" + configPath + ".json"
			if err := r.Files.Remove(record); err != nil {
				t.Fatal(err)
			}
			if c.record != "" {
				if err := r.Files.Write(record, []byte(c.record), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff, err := r.recordsDiff(); len(diff) != 2 || err != nil {
				t.Errorf("before: %q, %v", diff, err)
			}
			if lost, err := r.recoverOriginal(t.Context()); lost == nil || err != nil {
				t.Errorf("recover: %v, %v", lost, err)
			}
			if lost, err := r.lostOriginal(); lost != nil || err != nil {
				t.Errorf("after: %v, %v", lost, err)
			}
			if err := r.Files.PutBack(t.Context(), configPath); err != nil {
				t.Fatal(err)
			}
			got, _ := r.Files.Read(configPath)
			if !reflect.DeepEqual(parse(t, got), parse(t, []byte(c.owner))) {
				t.Errorf("got\n%s", got)
			}
		})
	}
}
