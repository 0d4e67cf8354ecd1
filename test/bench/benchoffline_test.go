//go:build e2e

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const (
	// olderPatch is what the update bundle is built on.
	olderPatch = "v1.37.0"
	// mostOfGzip is how large a bundle may be, beside what gzip makes of the same.
	mostOfGzip = 0.6
	// mostMemory is what making or loading a bundle may take, in MB.
	mostMemory = 200
)

// TestBenchOffline holds bundles against `docker save | gzip` and `docker load`
// of the same images. It asserts sizes and memory, and no time.
func TestBenchOffline(t *testing.T) {
	made := hosts.New(t, "docker-28.5", "10.193.9.0/24", "bench-off-a", "bench-off-b")
	theirs := saved(t, made[0])
	dir := t.TempDir()
	older := filepath.Join(dir, "older")
	hosts.Local(t, hosts.Built.Binary, "offline", "build", "--quick", "--kubernetes-version", olderPatch, "--to", older)
	dense := builtAs(t, filepath.Join(dir, "dense"))
	quick := builtAs(t, filepath.Join(dir, "quick"), "--quick")
	update := builtAs(t, filepath.Join(dir, "update"), "--base", older)
	for _, b := range []*carried{&dense, &quick} {
		b.loadInto(t, made[1])
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	load, _ := os.ReadFile("/proc/loadavg") // without it no time says anything
	fmt.Printf("\none run each, on %d CPUs; load %s\n\n", runtime.NumCPU(), strings.Fields(string(load))[0])
	fmt.Fprintln(table, "MB\tof gzip\tmade in s\tby MB\tloaded in s\tby MB\t  what")
	for _, c := range []carried{theirs, dense, quick, update} {
		fmt.Fprintf(table, "%.1f\t%.2f\t%.1f\t%s\t%s\t%s\t  %s\n", float64(c.size)/1e6,
			float64(c.size)/float64(theirs.size),
			c.making.seconds, c.making.megabytes(), c.loading.took(), c.loading.megabytes(), c.what)
	}
	_ = table.Flush()
	if float64(dense.size) > mostOfGzip*float64(theirs.size) {
		t.Errorf("the bundle is more than %.1f of what gzip makes", mostOfGzip)
	}
	if update.size >= dense.size {
		t.Error("an update is as large as a whole bundle")
	}
	for _, b := range []carried{dense, quick, update} {
		if most := max(b.making.memory, b.loading.memory); most > mostMemory {
			t.Errorf("%s takes %.0f MB of memory, more than %d", b.what, most, mostMemory)
		}
	}
}

// carried are the images of a cluster in one file.
type carried struct {
	what, path      string
	size            int64
	making, loading used
}

// used is what a run took; nothing if there was none, or its memory is that of
// a daemon.
type used struct {
	seconds float64
	memory  float64 // MB
}

func (u used) took() string { return orDash(u.seconds) }

func (u used) megabytes() string { return orDash(u.memory) }

func orDash(value float64) string {
	if value == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", value)
}

func parseUsed(t *testing.T, out string) (u used) {
	t.Helper()
	var kibibytes float64
	if _, err := fmt.Sscan(out, &u.seconds, &kibibytes); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	u.memory = kibibytes * 1024 / 1e6
	return u
}

// saved is what one does without this program, on a Docker that has the images.
func saved(t *testing.T, m hosts.Machine) carried {
	t.Helper()
	hosts.LoadPlain(t, m)
	c := carried{what: "docker save | gzip, docker load into one Docker", path: "/root/images.tar.gz"}
	pipe := "docker save $(kube-bootstrap offline list) | gzip >" + c.path
	c.making.seconds = secondsOf(t, m, "bash -o pipefail -c '"+pipe+"'")
	m.Sh(t, "docker rmi -f $(kube-bootstrap offline list)")
	forgetDeleted(t)
	c.loading.seconds = secondsOf(t, m, "docker load -q -i "+c.path)
	if _, err := fmt.Sscan(m.Sh(t, "stat -c %s "+c.path), &c.size); err != nil {
		t.Fatal(err)
	}
	return c
}

func secondsOf(t *testing.T, m hosts.Machine, command string) float64 {
	t.Helper()
	took := timed(t, m, command)
	return took.end.Sub(took.begin).Seconds()
}

// builtAs makes a bundle of parts that are there, with nothing of it compressed
// yet.
func builtAs(t *testing.T, path string, flags ...string) carried {
	t.Helper()
	args := append([]string{hosts.Built.Probe, "usage", hosts.Built.Binary, "offline", "build", "--to", path}, flags...)
	out, err := host.Command{Args: args, Env: []string{"KUBE_BOOTSTRAP_CACHE=" + withoutFrames(t)}}.Run(t.Context())
	must.NoError(t, err)
	info, err := os.Stat(path)
	must.NoError(t, err)
	what := strings.TrimSpace("bundle " + strings.Join(flags[:min(len(flags), 1)], " "))
	return carried{what: what, path: path, size: info.Size(), making: parseUsed(t, string(out))}
}

// withoutFrames returns a cache with all parts except the compressed parts.
func withoutFrames(t *testing.T) string {
	t.Helper()
	made := t.TempDir()
	must.NoError(t, os.Mkdir(filepath.Join(made, "parts"), 0o755))
	all, err := filepath.Glob(filepath.Join(cache.Dir(), "parts/[^.]*"))
	must.NoError(t, err)
	for _, part := range all {
		name := filepath.Base(part)
		if strings.HasPrefix(name, "frame-") {
			continue
		}
		must.NoError(t, os.Symlink(part, filepath.Join(made, "parts", name)))
	}
	return made
}

// loadInto fills the three stores of a host whose daemons run, as the Docker
// runs that one holds this against.
func (c *carried) loadInto(t *testing.T, m hosts.Machine) {
	t.Helper()
	m.Put(t, c.path, "/root/bundle.tar.zst")
	load := "kube-bootstrap offline bootstrap --bundle /root/bundle.tar.zst"
	m.Sh(t, load)
	m.Sh(t, "docker rmi -f $(docker images -q)")
	m.Sh(t, "docker -H unix:///run/docker-bootstrap.sock rmi -f $(docker -H unix:///run/docker-bootstrap.sock "+
		"images -q)")
	m.Sh(t, "ctr -n k8s.io images rm --sync $(ctr -n k8s.io images ls -q)")
	forgetDeleted(t)
	c.loading = parseUsed(t, m.Sh(t, "probe usage /usr/local/bin/"+load))
	m.Sh(t, "kube-bootstrap turndown --yes")
}

// forgetDeleted lets ext4 forget what was deleted. For as long as it remembers (35 s),
// it looks at each such file before it makes another one, which takes longer than
// all else.
func forgetDeleted(t *testing.T) {
	t.Helper()
	time.Sleep(40 * time.Second)
}
