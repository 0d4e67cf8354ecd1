// Package kubeconfig adds a cluster to a kubeconfig file of the user, updates
// its entries, and removes them again.
package kubeconfig

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

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// merged holds what Unmerge needs to restore the kubeconfig. It is stored in the
// private directory of the cluster.
type merged struct {
	Path    string `json:"path"`
	Before  []byte `json:"before"` // the former content; null: the file did not exist
	After   []byte `json:"after"`
	Context string `json:"context"` // the former current context
}

const mergedFile = "kubeconfig.json"

// files are the kubeconfig of a user and the note about it, for one cluster.
type files struct{ session.Options }

// entry is the name of a cluster, its user and its context in a kubeconfig.
func (f files) entry() string { return "kube-bootstrap-" + f.Name }

// Merge adds the cluster to the user's kubeconfig at path, makes it the current
// context, and returns the name of the context.
func Merge(ctx context.Context, options session.Options, path string) (name string, err error) {
	err = session.Do(ctx, options, session.Scope{}, func(s *session.Session, _ topology.State) error {
		own, err := load(ctx, s)
		if err != nil {
			return err
		}
		if err := Unmerge(ctx, s.Options); err != nil { // of another file, or of an earlier cluster
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		f := files{s.Options}
		name = f.entry()
		return locked(ctx, path, func() error { return f.merge(path, own) })
	})
	return name, err
}

// load returns the admin kubeconfig of the cluster.
func load(ctx context.Context, s *session.Session) (*api.Config, error) {
	data, err := apiserver.Read(ctx, s, "")
	if err != nil {
		return nil, err
	}
	return clientcmd.Load(data)
}

func (f files) merge(path string, own *api.Config) error {
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

func (f files) noteMerged(note merged) error {
	data, err := json.Marshal(note)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.PrivateDir(), 0o700); err != nil {
		return err
	}
	return host.WriteFile(filepath.Join(f.PrivateDir(), mergedFile), data, 0o600)
}

// Unmerge restores the kubeconfig that Merge changed. If somebody else has
// changed the file since, Unmerge only removes the entries of the cluster.
func Unmerge(ctx context.Context, options session.Options) error {
	f := files{options}
	note, err := f.merged()
	if err != nil || note == nil {
		return err
	}
	if _, err := os.Stat(note.Path); err == nil {
		if err := locked(ctx, note.Path, func() error { return f.remove(*note) }); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(f.PrivateDir(), mergedFile))
}

func (f files) remove(note merged) error {
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

// locked calls do while it holds the lock file that kubectl uses too.
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
