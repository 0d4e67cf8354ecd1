package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// OpenDocker returns the node that is a container on an engine. The engine
// stays the caller's to close.
func OpenDocker(engine *docker.Engine, container string) Node {
	return &dockerNode{engine: engine, container: container}
}

type dockerNode struct {
	engine    *docker.Engine
	container string
}

func (n *dockerNode) Exec(ctx context.Context, cmd Exec) error {
	err := n.engine.ExecIn(ctx, n.container, host.Command{
		Args: cmd.Args, Env: cmd.Env, Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr,
	})
	var code docker.ExitCode
	if errors.As(err, &code) {
		return &ExitError{Node: n.container, Code: int(code), Err: err}
	}
	return err
}

// A file goes through a command and not through the engine's own copy, which
// does not see what is mounted inside: /run is a tmpfs.
const putScript = `set -e
umask 077
mkdir -p -m 755 "$(dirname "$1")"
trap 'rm -f "$1.new$$"' EXIT
cat >"$1.new$$"
chmod "$2" "$1.new$$"
mv -f "$1.new$$" "$1"`

func (n *dockerNode) Put(ctx context.Context, path string, mode os.FileMode, content io.Reader) error {
	perm := fmt.Sprintf("%04o", mode.Perm())
	if err := n.Exec(ctx, Exec{Args: []string{"/bin/sh", "-c", putScript, "sh", path, perm}, Stdin: content}); err != nil {
		return fmt.Errorf("put %s: %w", path, err)
	}
	return nil
}

const noSuchFile = 44

func (n *dockerNode) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	look := Exec{Args: []string{"/bin/sh", "-c", fmt.Sprintf(`[ -e "$1" ] || exit %d`, noSuchFile), "sh", path}}
	err := n.Exec(ctx, look)
	var exit *ExitError
	if errors.As(err, &exit) && exit.Code == noSuchFile {
		return nil, &fs.PathError{Op: "get", Path: n.container + ":" + path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	reader, writer := io.Pipe()
	go func() {
		writer.CloseWithError(n.Exec(ctx, Exec{Args: []string{"cat", path}, Stdout: writer}))
	}()
	return reader, nil
}

func (n *dockerNode) Close() error { return nil }
