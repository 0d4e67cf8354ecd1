// Package objectstore runs a real server of object storage with the protocol S3 on this machine: versitygw.
package objectstore

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const (
	program = "github.com/versity/versitygw/cmd/versitygw"
	version = "v1.8.0"
)

// The user that has all rights, and a user that has none but those of a policy.
const (
	RootKey, RootSecret = "root", "root-secret"
	UserKey, UserSecret = "user", "user-secret"
)

// Server is a server whose buckets are directories.
type Server struct {
	URL string
	dir string
	run *exec.Cmd
}

// Start starts a server with a bucket, which is stopped when the test ends.
func Start(t *testing.T, bucket string) *Server {
	t.Helper()
	s := &Server{dir: t.TempDir()}
	must.NoError(t, os.Mkdir(filepath.Join(s.dir, bucket), 0o700))
	users, err := json.Marshal(map[string]any{"accessAccounts": map[string]any{
		UserKey: map[string]any{"access": UserKey, "secret": UserSecret, "role": "user"},
	}})
	must.NoError(t, err)
	iam := t.TempDir()
	must.Write(t, filepath.Join(iam, "users.json"), users)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	address := listener.Addr().String()
	must.NoError(t, listener.Close())
	s.URL = "http://" + address
	s.run = exec.Command(built(t), "--port", address, "--access", RootKey, "--secret", RootSecret, "--iam-dir", iam,
		"--quiet", "--health", "/health", "posix", s.dir)
	s.run.Stderr = os.Stderr
	must.NoError(t, s.run.Start())
	t.Cleanup(s.Stop)
	must.Until(t, "the object store answers", s.answers)
	return s
}

// Stop kills the server.
func (s *Server) Stop() {
	_ = s.run.Process.Kill()
	_ = s.run.Wait()
}

// Path returns the file of an object.
func (s *Server) Path(bucket, key string) string { return filepath.Join(s.dir, bucket, key) }

func (s *Server) answers() bool {
	answer, err := http.Get(s.URL + "/health")
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// built returns the program, which is built the first time.
func built(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	must.NoError(t, err)
	dir := filepath.Join(cache, "kube-bootstrap", "versitygw-"+version)
	path := filepath.Join(dir, "versitygw")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	build := exec.Command("go", "install", program+"@"+version)
	build.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-trimpath")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("build %s: %w\n%s", program, err, out))
	}
	return path
}
