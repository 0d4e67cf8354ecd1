package containerd

import (
	"reflect"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestDamagedRecords: what is no value of a record is never used.
func TestDamagedRecords(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	for _, path := range []string{beforeRecord.Path, otherRecord.Path} {
		for _, content := range []string{
			"", "{", "null", "{}", "[]", "\x00\xff", `{"images":[],"paths":["/etc"],"dirs":{"/etc":[]}}`,
		} {
			must.NoError(t, files.Write(path, []byte(content), 0o600))
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
		"missing": {owner, ""}, "damaged": {owner, "{{"}, "no value": {owner, "{}"},
		"of a host without a config": {"", "{{"},
	} {
		t.Run(name, func(t *testing.T) {
			files := host.Files{Root: t.TempDir()}
			ours, _, err := mergeConfig([]byte(c.owner), 1, wanted{SandboxImage: pause})
			must.NoError(t, err)
			must.NoError(t, files.UserFile(configPath).Replace(ours, 0o644))
			record := host.StateDir + "/original" + configPath + ".json"
			must.NoError(t, files.Remove(record))
			if c.record != "" {
				must.NoError(t, files.Write(record, []byte(c.record), 0o600))
			}
			if diff, err := recordsDiff(files); len(diff) != 2 || err != nil {
				t.Errorf("before: %q, %v", diff, err)
			}
			if lost, err := recoverOriginal(t.Context(), files, wanted{SandboxImage: pause}); lost == nil ||
				err != nil {
				t.Errorf("recover: %v, %v", lost, err)
			}
			if lost, err := lostOriginal(files); lost != nil || err != nil {
				t.Errorf("after: %v, %v", lost, err)
			}
			must.NoError(t, files.UserFile(configPath).PutBack(t.Context()))
			got, _ := files.Read(configPath)
			if !reflect.DeepEqual(parse(t, got), parse(t, []byte(c.owner))) {
				t.Errorf("got\n%s", got)
			}
		})
	}
}
