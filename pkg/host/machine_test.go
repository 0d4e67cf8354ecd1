package host

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestPortFree: the port of one address is taken. 192.0.2.1 belongs to no machine.
func TestPortFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).AddrPort().Port()
	for text, taken := range map[string]bool{
		"127.0.0.1": true, "0.0.0.0": true, "127.0.0.2": false, "192.0.2.1": false,
	} {
		if err := PortFree(netip.AddrPortFrom(netip.MustParseAddr(text), port)); (err != nil) != taken {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestCompletePath: a program beside the directories of PATH is found, and the user's come first.
func TestCompletePath(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":/usr/bin")
	defer func(before []string) { ProgramDirs = before }(ProgramDirs)
	ProgramDirs = []string{"/usr/bin", t.TempDir()}
	must.NoError(t, os.WriteFile(ProgramDirs[1]+"/program-of-root", []byte("#!/bin/sh\necho found\n"), 0o755))
	if HasProgram("program-of-root") {
		t.Fatal("the test finds nothing")
	}
	CompletePath()
	if out, err := Run(t.Context(), "program-of-root"); err != nil || out != "found" {
		t.Errorf("got %q, %v", out, err)
	}
	if got, want := os.Getenv("PATH"), dir+":/usr/bin:"+ProgramDirs[1]; got != want {
		t.Errorf("PATH is %s, want %s", got, want)
	}
}

// TestOwnUmask: directories of a host get their mode also with the umask of a hardened host.
func TestOwnUmask(t *testing.T) {
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	SetUmask()
	files := Files{Root: t.TempDir()}
	must.NoError(t, files.Write("/opt/cni/bin/bridge", nil, 0o755))
	must.NoError(t, files.Write("/opt/cni/secret", nil, 0o600))
	for path, want := range map[string]os.FileMode{
		"/opt/cni": 0o755, "/opt/cni/bin": 0o755, "/opt/cni/bin/bridge": 0o755, "/opt/cni/secret": 0o600,
	} {
		if got := files.mode(path); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}
