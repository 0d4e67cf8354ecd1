//go:build root

package kernel

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAContainerSharesItsKernel runs this test in a PID namespace of its own.
func TestAContainerSharesItsKernel(t *testing.T) {
	const inside = "MODULE_TEST_INSIDE"
	if os.Getenv(inside) != "" {
		if !Shared() {
			t.Error("the kernel is not shared in a container")
		}
		return
	}
	again := exec.Command("unshare", "--pid", "--fork", "--mount-proc", os.Args[0], "-test.run", "^"+t.Name()+"$")
	again.Env = append(os.Environ(), inside+"=1")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestOffersModule(t *testing.T) {
	for name, want := range map[string]bool{"vxlan": true, "bridge": true, "no_such_module": false} {
		if got, err := OffersModule(t.Context(), name); got != want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}

func TestLinkKindIn(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
	must.NoError(t, unix.Unshare(unix.CLONE_NEWNET))
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "probe"
	for _, want := range []bool{false, true} {
		if got, err := linkKindIn("/proc/thread-self/ns/net", "bridge"); got != want || err != nil {
			t.Errorf("got %t, %v, want %t", got, err, want)
		}
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil && !want {
			t.Fatal(err)
		}
	}
}
