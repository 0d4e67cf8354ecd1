package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// sharedDir holds, on this machine, what all hosts of the fleet see below
// bundleDir. It is a directory so that a new bundle reaches running hosts.
func (f *fleet) sharedDir() string { return filepath.Join(f.CacheDir, "clusters", f.Name) }

// sharedVolume holds the same on the machine of a remote engine.
func (f *fleet) sharedVolume() string { return f.Name + "-shared" }

const bundleName = "bundle.tar.zst"

// shared is the step that gives the bundle to the hosts.
func (f *fleet) shared() step.Step {
	if f.docker.Remote() {
		return step.Step{Name: "send files to the engine", Check: f.unsent, Apply: f.send, Waits: true}
	}
	return step.Step{Name: "share files with the hosts", Check: f.unshared, Apply: f.share}
}

func (f *fleet) unshared(context.Context) (step.Diff, error) {
	target := filepath.Join(f.sharedDir(), bundleName)
	switch {
	case f.Bundle == "":
		if _, err := os.Stat(f.sharedDir()); err != nil {
			return step.Diff{"make " + f.sharedDir()}, nil
		}
	case !sameFile(f.Bundle, target):
		return step.Diff{"link " + f.Bundle + " to " + target}, nil
	}
	return nil, nil
}

func (f *fleet) share(ctx context.Context) error {
	if err := os.MkdirAll(f.sharedDir(), 0o755); err != nil || f.Bundle == "" {
		return err
	}
	return linkOrCopy(ctx, f.Bundle, filepath.Join(f.sharedDir(), bundleName))
}

// unsent asks a host what it sees. As long as there is none, or the file is not
// whole, it is sent again: only then a time stands on it.
func (f *fleet) unsent(ctx context.Context) (step.Diff, error) {
	if f.Bundle == "" {
		return nil, nil
	}
	ours, err := os.Stat(f.Bundle)
	if err != nil {
		return nil, err
	}
	size, at, err := f.docker.FileInMachine(ctx, f.members()[0].name, bundleDir+"/"+bundleName)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err == nil && size == ours.Size() && at.Unix() == ours.ModTime().Unix() {
		return nil, nil
	}
	return step.Diff{"send " + f.Bundle + " to the engine"}, nil
}

func (f *fleet) send(ctx context.Context) error {
	file, err := os.Open(f.Bundle)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	counted := &counter{from: file, report: func(n int64) { step.Report(ctx, "send "+f.Bundle, n, info.Size()) }}
	sent := host.SentFile{Name: bundleName, Size: info.Size(), ModTime: info.ModTime(), Content: counted}
	return f.docker.FillVolume(ctx, f.sharedVolume(), f.Name, f.image(), sent)
}
