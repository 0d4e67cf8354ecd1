package tools

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What leaves a cluster holds no secret, and lands nowhere but in its place.
func TestUnpack(t *testing.T) {
	const secret = "token: abcdef.0123456789abcdef\n-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\n" +
		"password = hunter22\nAuthorization: Bearer eyJhbGciOiJSUzI1.eyJpc3MiOiJrdWI.c2lnbmF0dXJl\n"
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	for _, name := range []string{"./logs/a.log", "../outside"} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(secret))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(secret)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "dump")
	if err := unpack(&packed, dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "logs", "a.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"0123456789abcdef", "MHcC", "hunter22", "c2lnbmF0dXJl"} {
		if strings.Contains(string(got), word) {
			t.Errorf("%s is in\n%s", word, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "..", "outside")); err == nil {
		t.Error("a file landed outside of the directory")
	}
}
