// Package dump writes the logs and the state of a host into a directory, for a bug
// report, without secrets. The host may be this machine or a node of a cluster: only
// Exec differs.
//
//	sources ──▶ Exec on the host, several at a time ──▶ Redact ──▶ a file each
//	               └── what fails ──▶ errors.txt
package dump

import (
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

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ErrorsFile is the file of a dump that says what was not collected, and why.
const ErrorsFile = "errors.txt"

// parallel is how many scripts run on a host at the same time.
const parallel = 8

// Host is the host of a dump.
type Host struct {
	// Exec runs a command on the host. It ends the command when ctx ends.
	Exec func(ctx context.Context, args []string, stdout, stderr io.Writer) error
	// Program is the path of kube-bootstrap on the host.
	Program string
	// Workloads adds what the pods and containers of users print, which may contain
	// anything.
	Workloads bool
	// Objects adds the objects of the cluster, if the host is a control plane.
	Objects bool

	limit time.Duration // of a script; 0 is the usual one
}

// Here returns this machine, without the workloads of users.
func Here(program string) Host {
	run := func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		_, err := host.Command{Args: args, Stdout: stdout, Stderr: stderr, Group: true}.Run(ctx)
		return err
	}
	return Host{Exec: run, Program: program, Objects: true}
}

// Collect writes a dump of a host into the directory dir, which exists. It returns
// the files that are missing or incomplete; ErrorsFile has the reasons. If ctx ends,
// the files of what has ended by then remain.
func Collect(ctx context.Context, h Host, dir string) (failed []string, err error) {
	return collect(ctx, h, dir, sources)
}

func collect(ctx context.Context, h Host, dir string, from []source) ([]string, error) {
	c := &collection{Host: h, dir: dir, room: make(chan struct{}, parallel)}
	os.Remove(filepath.Join(dir, ErrorsFile)) // of an earlier dump
	for _, s := range from {
		if h.has(s.only) {
			c.wg.Go(func() { c.source(ctx, s) })
		}
	}
	c.wg.Wait()
	slices.Sort(c.failed)
	return c.failed, errors.Join(c.err, ctx.Err())
}

// collection is a dump that is being written.
type collection struct {
	Host
	dir  string
	room chan struct{} // one element for each script that runs
	wg   sync.WaitGroup

	mu      sync.Mutex
	running []string // files
	failed  []string // files
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
	for name := range strings.Lines(string(names)) {
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
	c.write(file, Redact(text), os.O_TRUNC)
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

// write writes a file, or appends to it, as flag says.
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
