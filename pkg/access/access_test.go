package access

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// putting returns the command that a node runs for Put, with its stdin.
func putting(t *testing.T, path, size string) (*exec.Cmd, io.WriteCloser) {
	t.Helper()
	args := Script(putScript, path, "0640", size)
	cmd := exec.Command(args[0], args[1:]...)
	in, err := cmd.StdinPipe()
	must.NoError(t, err)
	must.NoError(t, cmd.Start())
	return cmd, in
}

// TestPutOnlyWholeFiles: stdin ends early if the process that sends the file is killed.
func TestPutOnlyWholeFiles(t *testing.T) {
	path := must.Write(t, filepath.Join(t.TempDir(), "program"), "former")
	for _, c := range []struct{ size, want string }{{"6", "former"}, {"4", "part"}} {
		cmd, in := putting(t, path, c.size)
		_, err := io.WriteString(in, "part")
		must.NoError(t, err)
		must.NoError(t, in.Close())
		if err := cmd.Wait(); (err == nil) != (c.want == "part") || string(must.Read(t, path)) != c.want {
			t.Errorf("size %s: %v, it is now %q", c.size, err, must.Read(t, path))
		}
		left(t, path)
	}
}

// TestAnInterruptedPutLeavesNothing sends the signal of Node.Exec after the first bytes.
func TestAnInterruptedPutLeavesNothing(t *testing.T) {
	path := must.Write(t, filepath.Join(t.TempDir(), "program"), "former")
	cmd, in := putting(t, path, "4")
	_, err := io.WriteString(in, "part")
	must.NoError(t, err)
	must.Until(t, "the first bytes arrive", func() bool {
		found, _ := filepath.Glob(path + ".new*")
		return len(found) == 1 && string(must.Read(t, found[0])) == "part"
	})
	must.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	must.NoError(t, in.Close())
	if err := cmd.Wait(); err == nil || string(must.Read(t, path)) != "former" {
		t.Errorf("%v, it is now %q", err, must.Read(t, path))
	}
	left(t, path)
}

// left fails if the directory of a file contains anything else.
func left(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	must.NoError(t, err)
	for _, e := range entries {
		if strings.Contains(e.Name(), ".new") {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// TestAnEndlessOutputIsRefused: otherwise it would fill the memory of this machine.
func TestAnEndlessOutputIsRefused(t *testing.T) {
	out := output{left: longestOutput}
	n, err := io.Copy(&out, io.LimitReader(zeros{}, 2*longestOutput))
	if err == nil || n > longestOutput || out.kept.Len() > longestOutput ||
		!strings.Contains(err.Error(), "more than 16 MiB") {
		t.Errorf("%d bytes, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
