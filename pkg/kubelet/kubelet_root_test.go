//go:build root

package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vishvananda/netns"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestMountsOfPodsAreSharedAndTakenBack(t *testing.T) {
	k := fresh(t, false)
	must.NoError(t, k.Files.MkdirAll(Dir))
	t.Cleanup(func() { _ = filesystem.UnmountBelow(k.Files.Root) })
	// Whatever the machine does with its mounts, here they begin private.
	must.NoError(t, unix.Mount(k.Files.Root, k.Files.Root, "", unix.MS_BIND, ""))
	must.NoError(t, unix.Mount("", k.Files.Root, "", unix.MS_PRIVATE, ""))
	for range 2 {
		must.NoError(t, ShareMounts(k.Files))
	}
	if shared, err := filesystem.SharedMount(k.Files.Path(Dir) + "/pods"); err != nil || !shared {
		t.Errorf("shared %t, %v", shared, err)
	}
	pod := k.Files.Path(Dir) + "/pods"
	must.NoError(t, errors.Join(os.Mkdir(pod, 0o755), unix.Mount("tmpfs", pod, "tmpfs", 0, "")))
	must.NoError(t, errors.Join(unmount(k.Files), unmount(k.Files)))
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(table), k.Files.Path(Dir)) {
		t.Errorf("still mounted, or %v", err)
	}
}

// alone moves the test into a network of its own, where it may empty the firewall.
func alone(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	before, err := netns.Get()
	must.NoError(t, err)
	own, err := netns.New()
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := netns.Set(before); err != nil {
			t.Error(err)
			return // leave the thread locked, so that it ends with this test
		}
		own.Close()
		before.Close()
		runtime.UnlockOSThread()
	})
}

func world(t *testing.T, files host.Files) func() string {
	return func() string {
		var b strings.Builder
		err := filepath.WalkDir(files.Root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || strings.HasSuffix(path, "/made-dirs") {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			data, _ := os.ReadFile(path) // of a directory: none
			fmt.Fprintf(&b, "%s %s %q\n", path, info.Mode(), data)
			return nil
		})
		must.NoError(t, err)
		rules, err := host.Run(t.Context(), "sh", "-c", "nft list ruleset; { iptables-save; ip6tables-save; } | sed /^#/d")
		must.NoError(t, err)
		return b.String() + rules
	}
}

func TestConfigureContract(t *testing.T) {
	alone(t)
	for _, controlPlane := range []bool{true, false} {
		k := fresh(t, controlPlane)
		hosttest.Contract(t, world(t, k.Files), k.Configure())
	}
}

func TestUndoTakesAwayWhatTheKubeletMade(t *testing.T) {
	alone(t)
	k := fresh(t, true)
	put(t, k.Files, Dir+"/of-the-owner", "x")
	before := world(t, k.Files)()
	must.NoError(t, k.Configure().Apply(t.Context()))
	put(t, k.Files, Dir+"/pods/1/etc-hosts", "x")
	script := `set -e
for i in iptables ip6tables; do for table in filter nat mangle; do
  $i -w -t $table -N KUBE-KUBELET-CANARY; $i -w -t $table -N KUBE-X; $i -w -t $table -A OUTPUT -j KUBE-X; $i -w -t $table -A KUBE-X -j KUBE-KUBELET-CANARY
done; done
nft add table ip kube-proxy`
	if _, err := host.Run(t.Context(), "sh", "-c", script); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		must.NoError(t, k.Configure().Undo(t.Context()))
		if d := hosttest.Diff(before, world(t, k.Files)()); len(d) > 0 {
			t.Errorf("left behind: %s", strings.Join(d, "\n"))
		}
	}
}

func TestSysctlsArePutBack(t *testing.T) {
	alone(t)
	k := fresh(t, false)
	put(t, k.Files, "/proc/sys/vm/overcommit_memory", "0\n")
	put(t, k.Files, "/proc/sys/net/ipv4/ip_forward", "1\n")
	hosttest.Contract(t, world(t, k.Files), RememberSysctls(k.Files))
	before := world(t, k.Files)()
	must.NoError(t, RememberSysctls(k.Files).Apply(t.Context()))
	must.NoError(t, kernel.SetSysctl(k.Files, "vm.overcommit_memory", "1"))
	must.NoError(t, RememberSysctls(k.Files).Undo(t.Context()))
	if d := hosttest.Diff(before, world(t, k.Files)()); len(d) > 0 {
		t.Error(d)
	}
}
