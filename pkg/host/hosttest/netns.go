package hosttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netns"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// InNetns runs the rest of the test in a fresh network namespace.
func InNetns(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("network namespaces need root")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	ns, err := netns.New()
	must.NoError(t, err)
	t.Cleanup(func() { ns.Close() })
}

// Shell runs the lines of a script one after the other; each must succeed.
func Shell(t *testing.T, script string) {
	t.Helper()
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.TrimSpace(line), err, out)
		}
	}
}

// FakeProgram puts a shell script in the place of a program for the rest of the test.
func FakeProgram(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	must.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}
