package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// The stdin of the script also ends if this process is killed, so it compares the size. In dash, the
// trap EXIT runs after a signal only if the signal has a trap.
const putScript = `set -e
umask 077
mkdir -p -m 755 "$(dirname "$1")"
trap 'rm -f "$1.new$$"' EXIT
trap 'exit 130' HUP INT TERM
cat >"$1.new$$"
size=$(wc -c <"$1.new$$")
[ "$size" -eq "$3" ] || { echo "$size of $3 bytes arrived" >&2; exit 1; }
chmod "$2" "$1.new$$"
mv -f "$1.new$$" "$1"`

// PutByCommand is Node.Put of a node that has no other way for files than commands.
func PutByCommand(ctx context.Context, on Executor, path string, mode os.FileMode, content io.ReadSeeker) error {
	size, err := content.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = content.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", path, err)
	}
	args := Script(putScript, path, fmt.Sprintf("%04o", mode.Perm()), strconv.FormatInt(size, 10))
	if err := on.Exec(ctx, host.Command{Args: args, Stdin: content}); err != nil {
		return fmt.Errorf("put %s: %w", path, err)
	}
	return nil
}

const noSuchFile = 44

// GetByCommand is Node.Get of a node that has no other way for files than commands.
func GetByCommand(ctx context.Context, on Executor, path string) (io.ReadCloser, error) {
	err := Run(ctx, on, Script(fmt.Sprintf(`[ -e "$1" ] || exit %d`, noSuchFile), path)...)
	if exit, ok := errors.AsType[*ExitError](err); ok && exit.Code == noSuchFile {
		return nil, &fs.PathError{Op: "get", Path: exit.Node + ":" + path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	reader, writer := io.Pipe()
	go func() {
		writer.CloseWithError(on.Exec(ctx, host.Command{Args: []string{"cat", path}, Stdout: writer}))
	}()
	return reader, nil
}
