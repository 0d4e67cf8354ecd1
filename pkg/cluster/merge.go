package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// merged is what must be known to take entries out of a kubeconfig again. It
// lies in privateDir.
type merged struct {
	Path    string `json:"path"`
	Before  []byte `json:"before"` // what the file held; null: there was none
	After   []byte `json:"after"`
	Context string `json:"context"` // the current one before
}

const mergedFile = "kubeconfig.json"

// entry is the name of a cluster, its user and its context in a kubeconfig.
func (f *fleet) entry() string { return "kube-bootstrap-" + f.Name }

// MergeKubeconfig writes how to reach the cluster into the user's kubeconfig
// at path and makes it the current context. Clean takes it out again.
func MergeKubeconfig(ctx context.Context, options Options, path string) (string, error) {
	f, err := open(options, nil)
	if err != nil {
		return "", err
	}
	defer f.docker.Close()
	data, err := f.kubeconfig(ctx, "")
	if err != nil {
		return "", err
	}
	own, err := clientcmd.Load(data)
	if err != nil {
		return "", err
	}
	if err := f.unmerge(ctx); err != nil { // of another file, or of an earlier cluster
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return f.entry(), locked(ctx, path, func() error { return f.merge(path, own) })
}

func (f *fleet) merge(path string, own *api.Config) error {
	before, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		before, err = nil, nil
	}
	if err != nil {
		return err
	}
	config, err := clientcmd.Load(before)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	note := merged{Path: path, Before: before, Context: config.CurrentContext}
	name := f.entry()
	f.enter(config, own)
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if note.After, err = clientcmd.Write(*config); err != nil {
		return err
	}
	if err := f.noteMerged(note); err != nil {
		return err
	}
	return host.WriteFile(path, note.After, 0o600)
}

func (f *fleet) noteMerged(note merged) error {
	data, err := json.Marshal(note)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.privateDir(), 0o700); err != nil {
		return err
	}
	return host.WriteFile(filepath.Join(f.privateDir(), mergedFile), data, 0o600)
}

// unmerge takes the entries out: a file that nobody changed since is put back
// as it was, of another one only the entries go.
func (f *fleet) unmerge(ctx context.Context) error {
	note, err := f.merged()
	if err != nil || note == nil {
		return err
	}
	if _, err := os.Stat(note.Path); err == nil {
		if err := locked(ctx, note.Path, func() error { return f.takeOut(*note) }); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(f.privateDir(), mergedFile))
}

func (f *fleet) takeOut(note merged) error {
	now, err := os.ReadFile(note.Path)
	if err != nil {
		return err
	}
	if bytes.Equal(now, note.After) {
		if note.Before == nil {
			return os.Remove(note.Path)
		}
		return host.WriteFile(note.Path, note.Before, 0o600)
	}
	config, err := clientcmd.Load(now)
	if err != nil {
		return fmt.Errorf("%s: %w", note.Path, err)
	}
	name := f.entry()
	delete(config.Clusters, name)
	delete(config.AuthInfos, name)
	delete(config.Contexts, name)
	if config.CurrentContext == name {
		config.CurrentContext = ""
		if _, there := config.Contexts[note.Context]; there {
			config.CurrentContext = note.Context
		}
	}
	left, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return host.WriteFile(note.Path, left, 0o600)
}

// locked keeps kubectl and others away from a kubeconfig: they all make the
// same file beside it.
func locked(ctx context.Context, path string, do func() error) error {
	lock := path + ".lock"
	err := step.Until(step.WithLimit(ctx, step.CheckLimit(ctx)), func(context.Context) error {
		file, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0)
		if err != nil {
			return err
		}
		return file.Close()
	}, nil)
	if errors.Is(err, fs.ErrExist) {
		return &step.Problem{Name: "kubeconfig-locked", Text: "another program holds " + lock, Remedy: "remove it if none runs"}
	}
	if err != nil {
		return err
	}
	defer os.Remove(lock)
	return do()
}
