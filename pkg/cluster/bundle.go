package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// sharedDir holds, on this machine, what all hosts of the fleet see below
// bundleDir. It is a directory so that a new bundle reaches running hosts.
func (f *fleet) sharedDir() string { return filepath.Join(f.CacheDir, "clusters", f.Name) }

// sharedVolume holds the same on the machine of a remote engine.
func (f *fleet) sharedVolume() string { return f.Name + "-shared" }

const bundleName = "bundle.tar.zst"

// sharedFile is a file of ours that the hosts get under a name.
type sharedFile struct{ from, name string }

func (f *fleet) sharedFiles() (all []sharedFile) {
	for _, file := range []sharedFile{{f.Bundle, bundleName}, {f.Programs.Bundle, programsName(f.Programs.note())}} {
		if file.from != "" {
			all = append(all, file)
		}
	}
	return all
}

// shared is the step that gives the bundle to the hosts.
func (f *fleet) shared() step.Step {
	if f.docker.Remote() {
		return step.Step{Name: "send files to the engine", Check: f.unsent, Apply: f.send, Waits: true}
	}
	return step.Step{Name: "share files with the hosts", Check: f.unshared, Apply: f.share}
}

func (f *fleet) unshared(context.Context) (diff step.Diff, err error) {
	if _, err := os.Stat(f.sharedDir()); err != nil {
		diff = append(diff, "make "+f.sharedDir())
	}
	for _, file := range f.sharedFiles() {
		if target := filepath.Join(f.sharedDir(), file.name); !sameFile(file.from, target) {
			diff = append(diff, "link "+file.from+" to "+target)
		}
	}
	return diff, nil
}

func (f *fleet) share(ctx context.Context) error {
	if err := os.MkdirAll(f.sharedDir(), 0o755); err != nil {
		return err
	}
	for _, file := range f.sharedFiles() {
		target := filepath.Join(f.sharedDir(), file.name)
		if sameFile(file.from, target) {
			continue
		}
		if err := linkOrCopy(ctx, file.from, target); err != nil {
			return err
		}
	}
	return nil
}

// unsent asks a host what it sees. As long as there is none, or a file is not
// whole, it is sent again: only then a time stands on it.
func (f *fleet) unsent(ctx context.Context) (diff step.Diff, err error) {
	for _, file := range f.sharedFiles() {
		whole, err := f.sent(ctx, file)
		if err != nil {
			return nil, err
		}
		if !whole {
			diff = append(diff, "send "+file.from+" to the engine")
		}
	}
	return diff, nil
}

func (f *fleet) sent(ctx context.Context, file sharedFile) (bool, error) {
	ours, err := os.Stat(file.from)
	if err != nil {
		return false, err
	}
	size, at, err := f.docker.FileInMachine(ctx, f.members()[0].name, bundleDir+"/"+file.name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	return err == nil && size == ours.Size() && at.Unix() == ours.ModTime().Unix(), nil
}

func (f *fleet) send(ctx context.Context) error {
	for _, file := range f.sharedFiles() {
		whole, err := f.sent(ctx, file)
		if err == nil && !whole {
			err = f.sendFile(ctx, file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) sendFile(ctx context.Context, shared sharedFile) error {
	file, err := os.Open(shared.from)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	counted := &counter{from: file, report: func(n int64) { step.Report(ctx, "send "+shared.from, n, info.Size()) }}
	sent := docker.SentFile{Name: shared.name, Size: info.Size(), ModTime: info.ModTime(), Content: counted}
	return f.docker.FillVolume(ctx, f.sharedVolume(), f.Name, f.image(), sent)
}
