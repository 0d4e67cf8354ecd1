// Package dump writes the logs and the state of a host into a directory, for a bug
// report. It removes what is known to be secret. The host is this machine or a node of a cluster.
//
//	sources ──▶ Exec on the host, several at a time ──▶ Redact ──▶ a file each
//	               └── what fails ──▶ errors.txt
package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// ErrorsFile is the file of a dump that says what was not collected, and why.
	ErrorsFile = "errors.txt"

	parallel = 8           // scripts that run on a host at the same time
	limit    = time.Minute // of a script
	// grace is how long an ended script may need until it is left alone: nothing
	// ends a process that waits for a dead disk.
	grace = 10 * time.Second

	maxFile   = 32 << 20 // bytes of a file
	maxDump   = 1 << 30  // bytes of the files of a host, which somebody else may control
	maxNames  = 2000     // files of a source
	maxReason = 2 << 10  // bytes of an error message
)

// Target is the host of a dump.
type Target struct {
	// Exec runs a command on the host. It ends the command when ctx ends.
	Exec      func(ctx context.Context, args []string, stdout, stderr io.Writer) error
	Program   string // the path of kube-bootstrap on the host
	Workloads bool   // also what the pods and containers of users print, which may be anything
	Objects   bool   // also the objects of the cluster, if the host is a control plane

	limit time.Duration // of a script; 0 is the usual one
}

// Here returns this machine, without the workloads of users.
func Here(program string) Target {
	run := func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		_, err := host.Command{Args: args, Stdout: stdout, Stderr: stderr, Group: true}.Run(ctx)
		return err
	}
	return Target{Exec: run, Program: program, Objects: true}
}

// ErrExists is the error of MakeDir for an existing directory.
var ErrExists = errors.New("exists; give the path of a new directory")

// MakeDir creates the directory of a dump. In an existing one, another user might
// have placed links to files that root would overwrite.
func MakeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(dir)), 0o700); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o700)
	if os.IsExist(err) {
		return fmt.Errorf("%s %w", dir, ErrExists)
	}
	return err
}

// Collect writes a dump of a host into an existing directory. It returns the files that
// are missing or incomplete; ErrorsFile has the reasons. If ctx ends, the others remain.
func Collect(ctx context.Context, h Target, dir string) (failed []string, err error) {
	return collect(ctx, h, dir, sources)
}

func collect(ctx context.Context, h Target, dir string, from []source) ([]string, error) {
	c := &collection{Target: h, dir: dir, room: semaphore.NewWeighted(parallel)}
	for _, s := range from {
		if s.only == nil || s.only(h) {
			c.wg.Go(func() { c.source(ctx, s) })
		}
	}
	c.wg.Wait()
	slices.Sort(c.failed)
	return c.failed, errors.Join(c.err, ctx.Err())
}

// collection is a dump that is being written.
type collection struct {
	Target
	dir  string
	room *semaphore.Weighted // for scripts that run
	wg   sync.WaitGroup

	mu      sync.Mutex
	running []string // files
	failed  []string // files
	written int      // bytes
	err     error    // the directory cannot be written
}

// source collects the file of a source, or one file for each of its names.
func (c *collection) source(ctx context.Context, s source) {
	if s.names == "" {
		c.file(ctx, s, s.file, "")
		return
	}
	names, err := c.run(ctx, s.file, s.names, "")
	c.note(ctx, s.file, err)
	count := 0
	for name := range strings.Lines(string(names)) {
		if count++; count > maxNames {
			c.note(ctx, s.file, fmt.Errorf("more than %d files were found, and the rest is left out", maxNames))
			return
		}
		name = strings.TrimSuffix(name, "\n")
		file := strings.Replace(s.file, "*", strings.ReplaceAll(name, "/", "_"), 1)
		c.wg.Go(func() { c.file(ctx, s, file, name) })
	}
}

func (c *collection) file(ctx context.Context, s source, file, name string) {
	text, err := c.run(ctx, file, s.run, name)
	c.note(ctx, file, err)
	if len(text) == 0 {
		return
	}
	if s.clean != nil {
		text = s.clean(text)
	}
	if text = Redact(text); !c.fits(len(text)) {
		c.note(ctx, file, fmt.Errorf("the dump has %d MiB, and the rest is left out", maxDump>>20))
		return
	}
	c.write(file, text, os.O_TRUNC)
}

// fits reports whether the dump may become larger by a file.
func (c *collection) fits(size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.written+size > maxDump {
		return false
	}
	c.written += size
	return true
}

// note records why a file is missing or incomplete. An interruption is no reason:
// it concerns all files that are missing.
func (c *collection) note(ctx context.Context, file string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	c.failed = append(c.failed, file)
	c.mu.Unlock()
	c.write(ErrorsFile, Redact(fmt.Appendf(nil, "%s: %v\n", file, err)), os.O_APPEND)
}

func (c *collection) write(file string, text []byte, flag int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := write(filepath.Join(c.dir, filepath.FromSlash(file)), text, flag); err != nil && c.err == nil {
		c.err = err // the first one: a full disk has many
	}
}

func write(path string, text []byte, flag int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flag, 0o600)
	if err != nil {
		return err
	}
	_, err = to.Write(text)
	return errors.Join(err, to.Close())
}

// report says which files are being collected.
func (c *collection) report(ctx context.Context, begins, ends string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if begins != "" {
		c.running = append(c.running, begins)
	}
	c.running = slices.DeleteFunc(c.running, func(file string) bool { return file == ends })
	step.Report(ctx, strings.Join(c.running, ", "), 0, 0)
}

// run runs a script of a source on the host, with a name as its first argument. It
// returns what the script printed, also if it failed.
func (c *collection) run(ctx context.Context, file, script, name string) ([]byte, error) {
	if err := c.room.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer c.room.Release(1)
	c.report(ctx, file, "")
	defer c.report(ctx, "", file)
	said, told := &output{most: maxFile}, &output{most: maxReason}
	err := c.await(ctx, said, told, []string{"/bin/sh", "-c", prelude + script, c.Program, name})
	text, whole := said.taken()
	if !whole {
		err = errors.Join(err, fmt.Errorf("more than %d MiB were printed, and the rest is left out", maxFile>>20))
	}
	reason, _ := told.taken()
	return text, withReason(err, string(reason))
}

// await runs a command to its end, or to its limit.
func (c *collection) await(ctx context.Context, said, told *output, args []string) error {
	most := cmp.Or(c.limit, limit)
	late := fmt.Errorf("it did not end within %s", most)
	ctx, cancel := context.WithTimeoutCause(ctx, most, late) //nolint:forbidigo // then the dump omits the file
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Exec(ctx, args, said, told) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace): //nolint:forbidigo // ctx has ended
		return context.Cause(ctx)
	}
}

// withReason returns the error of a script, with what it wrote to stderr, not the script.
func withReason(err error, reason string) error {
	if err == nil {
		return nil
	}
	if command, ok := errors.AsType[*host.CommandError](err); ok {
		err = command.Err
	}
	if reason = strings.TrimSpace(reason); reason == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.Join(strings.Split(reason, "\n"), "; "))
}

// output keeps the first bytes that a command writes, which may still run when it is read.
type output struct {
	most int

	mu   sync.Mutex
	kept []byte
	cut  bool
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	room := o.most - len(o.kept)
	o.kept = append(o.kept, p[:min(room, len(p))]...)
	o.cut = o.cut || room < len(p)
	return len(p), nil
}

// taken returns what was written, and whether it is whole. Later output is dropped.
func (o *output) taken() (text []byte, whole bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, whole = o.kept, !o.cut
	o.kept, o.most = nil, 0
	return text, whole
}
