package maindocker

import (
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// A rebuild that was cut short ends with the owner's own setting, whatever it
// was, and twice does no harm.
func TestRebuildLeavesLiveRestoreAsItWas(t *testing.T) {
	for _, owner := range []string{"{}", `{"live-restore": false}`, `{"live-restore": true, "bip": "10.1.7.1/24"}`} {
		files := host.Files{Root: t.TempDir()}
		stopped := func() (*docker.Engine, error) { return docker.Open(filepath.Join(files.Root, "none.sock")) }
		d := Daemon{Files: files, Engine: stopped}
		if err := files.Write(daemonJSON, []byte(owner), 0o644); err != nil {
			t.Fatal(err)
		}
		want, err := readSettings(files)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second is the next run
			if err := d.beginRebuild(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if now, err := readSettings(files); err != nil || now[liveRestore] != true {
			t.Errorf("%s: during the restart: %v, %v", owner, now, err)
		}
		for range 2 {
			if err := d.endRebuild(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		now, err := readSettings(files)
		if diff := differences(now, want); err != nil || len(diff) > 0 || len(now) != len(want) || files.Exists(rebuildFile) {
			t.Errorf("%s: afterwards %v, %v", owner, now, err)
		}
	}
}
