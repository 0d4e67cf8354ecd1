package testhost

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// SharedDir is the directory on every host that contains the shared files. It is
// read-only there. With a local engine it is session.Options.SharedDir, with a
// remote engine it is a volume of the engine.
const SharedDir = "/opt/kube-bootstrap"

// sharedVolume returns the name of the volume for shared files on a remote engine.
func sharedVolume(cluster string) string { return cluster + "-shared" }

// SharedFile is a file of this machine that all hosts see under Name in SharedDir.
type SharedFile struct{ From, Name string }

// Share returns the step that gives the shared files to all hosts of a cluster.
func (u Setup) Share() step.Step {
	l := localFiles{u.Cluster.Session.SharedDir(), u.Files}
	if u.Cluster.Engine.Remote() {
		r := remoteFiles{u, l}
		return step.Step{
			ID: "share-files", Name: "send files to the engine", Check: r.missing, Apply: r.send, Waits: true,
		}
	}
	return step.Step{ID: "share-files", Name: "share files with the hosts", Check: l.missing, Apply: l.share}
}

// localFiles are shared through a directory of this machine.
type localFiles struct {
	dir   string
	files []SharedFile
}

func (l localFiles) missing(context.Context) (diff step.Diff, err error) {
	if _, err := os.Stat(l.dir); err != nil {
		diff = append(diff, "make "+l.dir)
	}
	for _, file := range l.files {
		if target := filepath.Join(l.dir, file.Name); !sameFile(file.From, target) {
			diff = append(diff, "link "+file.From+" to "+target)
		}
	}
	return diff, nil
}

func (l localFiles) share(ctx context.Context) error {
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	for _, file := range l.files {
		target := filepath.Join(l.dir, file.Name)
		if sameFile(file.From, target) {
			continue
		}
		if err := linkOrCopy(ctx, file.From, target); err != nil {
			return err
		}
	}
	return nil
}

// remoteFiles are shared through a volume of a remote engine. This machine keeps them too, as
// files that no node can change.
type remoteFiles struct {
	Setup
	here localFiles
}

// missing asks a host which files it sees. Without a host, and for a file that
// was sent incompletely, the file is sent again: the file gets its modification
// time last.
func (r remoteFiles) missing(ctx context.Context) (step.Diff, error) {
	diff, err := r.here.missing(ctx)
	if err != nil {
		return nil, err
	}
	for _, file := range r.Files {
		complete, err := r.sent(ctx, file)
		if err != nil {
			return nil, err
		}
		if !complete {
			diff = append(diff, "send "+file.From+" to the engine")
		}
	}
	return diff, nil
}

func (r remoteFiles) sent(ctx context.Context, file SharedFile) (bool, error) {
	local, err := os.Stat(file.From)
	if err != nil {
		return false, err
	}
	size, at, err := r.Cluster.Machines.File(ctx, r.Topology.Nodes()[0].Name, SharedDir+"/"+file.Name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	return err == nil && size == local.Size() && at.Unix() == local.ModTime().Unix(), nil
}

func (r remoteFiles) send(ctx context.Context) error {
	if err := r.here.share(ctx); err != nil {
		return err
	}
	for _, file := range r.Files {
		complete, err := r.sent(ctx, file)
		if err == nil && !complete {
			err = r.sendFile(ctx, file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r remoteFiles) sendFile(ctx context.Context, shared SharedFile) error {
	return withFile(ctx, "send "+shared.From, shared.From, func(content io.Reader, info os.FileInfo) error {
		sent := docker.SentFile{Name: shared.Name, Size: info.Size(), ModTime: info.ModTime(), Content: content}
		return r.Cluster.Volumes.Fill(ctx, sharedVolume(r.Cluster.Name), Image(r.Topology), sent)
	})
}

// withFile calls do with the content of a file, and reports what is read as progress of what.
func withFile(ctx context.Context, what, path string, do func(content io.Reader, info os.FileInfo) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return do(io.TeeReader(file, step.NewCounter(ctx, what, info.Size())), info)
}

// sameFile reports whether a and b are one file, or copies with the same size
// and modification time, as linkOrCopy creates them.
func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	if errA != nil || errB != nil {
		return false
	}
	return os.SameFile(x, y) || x.Size() == y.Size() && x.ModTime().Equal(y.ModTime())
}

// linkOrCopy makes to a hard link of from, or a copy if they are on different
// file systems. A reader of to sees either the old file or the new one.
func linkOrCopy(ctx context.Context, from, to string) error {
	temporary := to + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	if os.Link(real, temporary) != nil {
		if err := copyFile(ctx, real, temporary); err != nil {
			return err
		}
	}
	return os.Rename(temporary, to)
}

func copyFile(ctx context.Context, from, to string) error {
	return withFile(ctx, "copy "+from, from, func(content io.Reader, info os.FileInfo) error {
		return errors.Join(cache.Save(to, content), os.Chtimes(to, info.ModTime(), info.ModTime()))
	})
}
