//go:build root

package flannel

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestASlowFlanneldIsNotRestarted runs a program in a container that writes the file of
// flanneld when the test wants it. A flanneld whose file is lost is restarted, once.
func TestASlowFlanneldIsNotRestarted(t *testing.T) {
	engine, _ := dockertest.Start(t)
	must.NoError(t, engine.Images().Import(t.Context(), "flannel:test", archiveOf(t, "./testdata/flanneld")))
	for name, c := range map[string]struct {
		seconds, lost, starts int
		err                   error
	}{
		"slow":           {12, 0, 1, nil},
		"lost once":      {0, 1, 2, nil},
		"lost each time": {0, 9, 2, errLost},
	} {
		t.Run(name, func(t *testing.T) {
			d := runnable(t, engine)
			number := func(name string) string { return filepath.Join(d.SubnetDir, name) }
			must.NoError(t, d.Files.Write(number("seconds"), []byte(strconv.Itoa(c.seconds)), 0o644))
			must.NoError(t, d.Files.Write(number("lost"), []byte(strconv.Itoa(c.lost)), 0o644))
			if err := d.runAndWait(t.Context()); !errors.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
			starts, err := os.ReadFile(d.Files.Path(number("starts")))
			must.NoError(t, err)
			if string(starts) != strconv.Itoa(c.starts) {
				t.Errorf("%s starts, want %d", starts, c.starts)
			}
		})
	}
	t.Run("the next run finds that the file was lost", func(t *testing.T) {
		d := runnable(t, engine)
		must.NoError(t, d.runAndWait(t.Context()))
		must.NoError(t, d.Files.Write(d.leasePath(), []byte("FLANNEL_NETWORK="), 0o644))
		if err := d.lost(t.Context()); !errors.Is(err, errLost) {
			t.Errorf("got %v", err)
		}
	})
}

// runnable returns a Daemon with the lease of an earlier run and without an etcd.
func runnable(t *testing.T, engine *docker.Engine) Flanneld {
	t.Helper()
	d := testDaemon(t)
	d.Docker, d.Backend = func() *docker.Engine { return engine }, "host-gw"
	for _, path := range []string{d.Etcd.CA, d.Etcd.Cert, d.Etcd.Key} {
		must.NoError(t, d.Files.Write(path, nil, 0o600))
	}
	must.NoError(t, d.Files.Write(d.leasePath(), []byte(good), 0o644))
	t.Cleanup(func() { must.NoError(t, d.service().Remove(context.Background())) })
	return d
}

// archiveOf compiles the program of a directory and returns a tar file with it as /bin/flanneld.
func archiveOf(t *testing.T, dir string) *bytes.Buffer {
	t.Helper()
	program := filepath.Join(t.TempDir(), "flanneld")
	build := exec.Command("go", "build", "-o", program, dir)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, strings.TrimSpace(string(out)))
	}
	data := must.Read(t, program)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	must.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755}))
	must.NoError(t, w.WriteHeader(&tar.Header{Name: "bin/flanneld", Mode: 0o755, Size: int64(len(data))}))
	_, err := w.Write(data)
	must.NoError(t, errors.Join(err, w.Close()))
	return &archive
}
