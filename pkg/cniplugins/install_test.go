package cniplugins

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// files is a source in memory: the contents of the plugins by name.
type files map[string]string

func (f files) CNIPlugins(string) (map[string]digest.Digest, error) {
	digests := map[string]digest.Digest{}
	for name, content := range f {
		digests[name] = digest.FromString(content)
	}
	return digests, nil
}

func (f files) ReadCNIPlugins(_ context.Context, _ string, names []string) io.ReadCloser {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		_ = w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: "opt/cni/bin/" + name, Mode: 0o755, Size: int64(len(f[name])),
		})
		_, _ = io.WriteString(w, f[name])
	}
	_ = w.Close()
	return io.NopCloser(&b)
}

func (files) Close() error { return nil }

// fakePlugin answers VERSION like a CNI plugin.
func fakePlugin(versions string) string {
	return "#!/bin/sh\necho '{\"supportedVersions\":[" + versions + "]}'\n"
}

func installer(t *testing.T) Installer {
	t.Helper()
	from := files{"bridge": fakePlugin(`"1.0.0"`) + "# ours\n", "portmap": fakePlugin(`"1.0.0"`) + "# ours too\n",
		"host-local": fakePlugin(`"1.0.0"`), "loopback": fakePlugin(`"1.0.0"`)}
	return Installer{
		Files: host.Files{Root: t.TempDir()}, Arch: "amd64",
		Open: func(context.Context) (PluginSource, error) { return from, nil },
	}
}

func (i Installer) put(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := i.Files.Path(pluginPath(name))
	must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.NoError(t, os.WriteFile(path, []byte(content), mode))
	return path
}

func TestPluginsOnAFreshHost(t *testing.T) {
	i := installer(t)
	hosttest.Contract(t, hosttest.Tree(t, i.Files.Root), i.Step())
}

func TestPluginsOfTheUser(t *testing.T) {
	i := installer(t)
	usable := fakePlugin(`"0.4.0","1.0.0"`)
	kept := i.put(t, "bridge", usable, 0o755)
	old := i.put(t, "portmap", fakePlugin(`"0.3.1"`), 0o700)
	other := i.put(t, "calico", "not ours", 0o755)
	hosttest.Contract(t, hosttest.Tree(t, i.Files.Root), i.Step())

	must.NoError(t, i.Step().Apply(t.Context()))
	if string(must.Read(t, kept)) != usable || string(must.Read(t, other)) != "not ours" {
		t.Error("a usable plugin was replaced")
	}
	if !strings.Contains(string(must.Read(t, old)), "# ours too") {
		t.Error("a plugin that is too old stayed")
	}
}

func TestPluginsReplacedByTheUserStay(t *testing.T) {
	i := installer(t)
	const original = "too old"
	i.put(t, "loopback", original, 0o700)
	must.NoError(t, i.Step().Apply(t.Context()))
	path := i.put(t, "bridge", "the user's own", 0o755)
	i.put(t, "loopback", "the user's own", 0o755)
	var left []string
	ctx := step.WithLeft(t.Context(), func(what string) { left = append(left, what) })
	for range 2 {
		must.NoError(t, i.Step().Undo(ctx))
	}
	if string(must.Read(t, path)) != "the user's own" {
		t.Error("the user's plugin was removed")
	}
	if i.Files.Exists(pluginPath("portmap")) {
		t.Error("our plugin was left")
	}
	const beside = image.CNIDir + "/loopback.before-kube-bootstrap"
	if kept, err := i.Files.Read(beside); err != nil || string(kept) != original {
		t.Errorf("the original is %q, %v", kept, err)
	}
	slices.Sort(left)
	if len(left) != 2 || !strings.Contains(left[0], "bridge: ") || !strings.Contains(left[1], beside) {
		t.Errorf("reported %q", left)
	}
}

// TestPluginsThatAreLinks: they may be links to one program, which serves other networks too.
func TestPluginsThatAreLinks(t *testing.T) {
	i := installer(t)
	program := i.put(t, "one-for-all", fakePlugin(`"0.3.1"`), 0o755)
	for name, target := range map[string]string{"bridge": "one-for-all", "portmap": "missing"} {
		must.NoError(t, i.Files.Symlink(pluginPath(name), target))
	}
	hosttest.Contract(t, hosttest.Tree(t, i.Files.Root), i.Step())

	must.NoError(t, i.Step().Apply(t.Context()))
	if got := string(must.Read(t, program)); got != fakePlugin(`"0.3.1"`) {
		t.Errorf("the target of the link is now %q", got)
	}
}

// TestAKilledUpgrade: our previous plugin is still ours after a kill between the record and
// the write of the next plugin. The next run completes the upgrade, and turndown restores the
// plugin of the user.
func TestAKilledUpgrade(t *testing.T) {
	const original = "too old"
	for _, again := range []bool{true, false} {
		i := installer(t)
		path := i.put(t, "bridge", original, 0o700)
		must.NoError(t, i.Step().Apply(t.Context()))
		from, err := i.Open(t.Context())
		must.NoError(t, err)
		next := maps.Clone(from.(files))
		next["bridge"] += "# the next version\n"
		i.Open = func(context.Context) (PluginSource, error) { return next, nil }
		_, err = i.prepare("bridge", digest.FromString(next["bridge"]))
		must.NoError(t, err)
		if again {
			must.NoError(t, i.Step().Apply(t.Context()))
			if got := string(must.Read(t, path)); got != next["bridge"] {
				t.Errorf("the next run installed %q", got)
			}
		}
		ctx := step.WithLeft(t.Context(), func(what string) { t.Errorf("left: %s", what) })
		must.NoError(t, i.Step().Undo(ctx))
		if got := string(must.Read(t, path)); got != original || i.mode("bridge") != 0o700 {
			t.Errorf("run again %t: restored %q of mode %s", again, got, i.mode("bridge"))
		}
	}
}

// TestAHostWithAllPluginsNeedsNoSource: the source may be gone, and a remote
// source is not even opened.
func TestAHostWithAllPluginsNeedsNoSource(t *testing.T) {
	i := installer(t)
	gone := i
	gone.Open = func(context.Context) (PluginSource, error) { return nil, fs.ErrNotExist }
	if _, err := gone.Step().Check(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without plugins and without a source: %v", err)
	}
	must.NoError(t, i.Step().Apply(t.Context()))
	if diff, err := gone.Step().Check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("without a source: %v %v", diff, err)
	}
	remote := i
	remote.Remote = true
	remote.Open = func(context.Context) (PluginSource, error) { return nil, errors.New("opened") }
	if diff, err := remote.Step().Check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("a remote source: %v %v", diff, err)
	}
}

// TestPluginsWithAWrongDigest: nothing is installed from a source whose archive
// differs from its digests, or lacks a plugin.
func TestPluginsWithAWrongDigest(t *testing.T) {
	i := installer(t)
	for want, spoil := range map[string]func(files){
		"is not what its digest says": func(f files) { f["bridge"] = "other" },
		"has 3 of the 4":              func(f files) { delete(f, "bridge") },
	} {
		i.Open = func(ctx context.Context) (PluginSource, error) {
			good, err := installer(t).Open(ctx)
			archive := maps.Clone(good.(files))
			spoil(archive)
			return spoiled{good, archive}, err
		}
		if err := i.Step().Apply(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if i.Files.Exists(pluginPath("portmap")) {
			t.Errorf("%s: a plugin was installed", want)
		}
	}
}

// spoiled is a source whose archive contains other files than it says.
type spoiled struct {
	PluginSource
	archive files
}

func (s spoiled) ReadCNIPlugins(ctx context.Context, arch string, _ []string) io.ReadCloser {
	return s.archive.ReadCNIPlugins(ctx, arch, slices.Collect(maps.Keys(s.archive)))
}

// TestAnInterruptedInstallLeavesNothing: also beside a plugin of the user that was replaced.
func TestAnInterruptedInstallLeavesNothing(t *testing.T) {
	i := installer(t)
	i.put(t, "portmap", fakePlugin(`"0.3.1"`), 0o700)
	before := hosttest.Tree(t, i.Files.Root)()
	must.NoError(t, i.Step().Apply(t.Context()))
	i.put(t, ".kube-bootstrap-portmap-123", "half", 0o600)
	must.NoError(t, i.Step().Undo(t.Context()))
	if d := hosttest.Diff(before, hosttest.Tree(t, i.Files.Root)()); len(d) > 0 {
		t.Errorf("left %q", d)
	}
}

// TestAHugePluginIsRefused before it is read into memory.
func TestAHugePluginIsRefused(t *testing.T) {
	var archive bytes.Buffer
	must.NoError(t, tar.NewWriter(&archive).WriteHeader(&tar.Header{
		Name: "bridge", Typeflag: tar.TypeReg, Mode: 0o755, Size: 1 << 30,
	}))
	_, err := extract(&archive, map[string]digest.Digest{"bridge": digest.FromString("x")})
	if err == nil || !strings.Contains(err.Error(), "CNI plugin bridge has 1073741824 bytes") {
		t.Errorf("got %v", err)
	}
}
