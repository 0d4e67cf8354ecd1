package recovery

import (
	"crypto/sha256"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// contents returns the files of a backup of a new control plane.
func contents(t *testing.T) []host.File {
	t.Helper()
	files := host.Files{Root: t.TempDir()}
	pki := controlplane.PKI{HostSettings: controlplane.HostSettings{
		Files: files, HostName: "cp", IP: "10.0.0.1", ServiceCIDR: netip.MustParsePrefix("10.96.0.0/16"),
	}, Now: time.Now}
	must.NoError(t, (&step.Runner{}).Do(t.Context(), step.Plan{{pki.Certificates()}}))
	all, err := controlplane.Shared(files)
	must.NoError(t, err)
	settings, err := file.Marshal(config.Default())
	must.NoError(t, err)
	return append(all, host.File{Path: config.SavedPath, Data: settings})
}

// written returns a file with a backup of these files.
func written(t *testing.T, files []host.File) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cp.backup")
	pages := make([]byte, 4096)
	sum := sha256.Sum256(pages)
	save := func(to io.Writer) error {
		_, err := to.Write(append(pages, sum[:]...))
		return err
	}
	must.NoError(t, backup.Write(path, backup.Source{Files: files, Snapshot: save}, nil))
	return path
}

func TestABackupThatLacksAFileIsRefused(t *testing.T) {
	all := contents(t)
	if _, err := Open(written(t, all), nil, io.Discard); err != nil {
		t.Fatal(err)
	}
	for i, f := range all {
		_, err := Open(written(t, slices.Delete(slices.Clone(all), i, i+1)), nil, io.Discard)
		if found := step.Problems(err); len(found) != 1 || found[0].Name != "backup-damaged" ||
			!strings.Contains(found[0].Text, f.Path) {
			t.Errorf("without %s: %v", f.Path, err)
		}
	}
}

func TestTheSettingsOfABackupAreThoseOfThisProgram(t *testing.T) {
	all := contents(t)
	for name, settings := range map[string]string{
		"an unknown field":   "apiVersion: kube-bootstrap.dev/v1alpha1\nkind: Cluster\nunknown: x\n",
		"an unknown version": "apiVersion: kube-bootstrap.dev/v1alpha1\nkind: Cluster\nkubernetesVersion: v1.20.0\n",
	} {
		all[len(all)-1].Data = []byte(settings)
		if _, err := Open(written(t, all), nil, io.Discard); len(step.Problems(err)) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPlaceOfAnotherHostIsRefused(t *testing.T) {
	b := &Backup{}
	b.Manifest.Hosts = []backup.Host{
		{Name: "cp", Address: "10.0.0.1", ControlPlane: true}, {Name: "w", Address: "10.0.0.2"},
	}
	for _, c := range []struct {
		name, ip string
		refused  bool
	}{
		{"cp", "10.0.0.1", false}, {"cp", "10.0.0.9", false}, {"new", "10.0.0.9", false},
		{"new", "10.0.0.1", true}, {"new", "10.0.0.2", true}, {"w", "10.0.0.9", true}, {"w", "10.0.0.2", true},
	} {
		h := &local.Host{Config: config.Config{HostName: c.name, IPAddress: netip.MustParseAddr(c.ip)}}
		if err := b.PlaceProblem(h); (err != nil) != c.refused {
			t.Errorf("%s at %s: %v", c.name, c.ip, err)
		}
	}
}

func TestTheRevisionGrowsByMoreThanSinceTheBackup(t *testing.T) {
	now, b := time.Unix(1_800_000_000, 0), &Backup{}
	for age, want := range map[time.Duration]uint64{
		0: 1_000_000_000, -20 * time.Minute: 1_000_000_000, 30 * 24 * time.Hour: 26_920_000_000,
	} {
		b.Manifest.Created = now.Add(-age)
		if got := b.bump(now); got != want {
			t.Errorf("after %s: %d, want %d", age, got, want)
		}
	}
}

func TestOnlyTheSameBackupContinuesARestore(t *testing.T) {
	files, b, other := host.Files{Root: t.TempDir()}, &Backup{}, &Backup{}
	b.Manifest.Created, other.Manifest.Created = time.Unix(1, 0).UTC(), time.Unix(2, 0).UTC()
	begin := func(s step.Step) { must.NoError(t, (&step.Runner{}).Do(t.Context(), step.Plan{{s}})) }
	if b.Continues(files) {
		t.Error("a restore continues that has not begun")
	}
	begin(b.Begin(files))
	if !b.Continues(files) || other.Continues(files) {
		t.Error("another backup continues the restore, or the same one does not")
	}
	begin(End(files))
	if b.Continues(files) {
		t.Error("a restore continues that has ended")
	}
}
