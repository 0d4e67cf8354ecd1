// Package kubeconfig adds a cluster to a kubeconfig file of the user, updates
// its entries, and removes them again.
package kubeconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// merged is what Unmerge needs to restore a kubeconfig, in the cluster's private directory.
type merged struct {
	Path    string `json:"path"`
	Created bool   `json:"created"` // Merge created the file
	Context string `json:"context"` // the former current context
}

const mergedFile = "kubeconfig.json"

// files are the kubeconfig of a user and the note about it, for one cluster.
type files struct{ session.Selection }

// entry is the name of a cluster, its user and its context in a kubeconfig.
func (f files) entry() string { return "kube-bootstrap-" + f.Name }

// Merge adds the cluster to the user's kubeconfig at path, makes it the current
// context, and returns the name of the context.
func Merge(ctx context.Context, options session.Selection, path string) (string, error) {
	return session.Get(ctx, options, session.Requirements{},
		func(s *session.Session, _ topology.State) (string, error) {
			data, err := apiserver.Read(ctx, s, "")
			if err != nil {
				return "", err
			}
			return Add(ctx, s.Selection, data, path)
		})
}

// Add is Merge with the admin kubeconfig of the cluster, which the caller has read.
func Add(ctx context.Context, options session.Selection, admin []byte, path string) (string, error) {
	own, err := clientcmd.Load(admin)
	if err != nil {
		return "", err
	}
	if err := Unmerge(ctx, options); err != nil { // of another file, or of an earlier cluster
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f := files{options}
	return f.entry(), locked(ctx, path, func() error { return f.merge(path, own) })
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
	_, err := os.Stat(path)
	note := merged{Path: path, Created: errors.Is(err, fs.ErrNotExist)}
	return edit(path, func(config *api.Config) error {
		note.Context = config.CurrentContext
		name := f.entry()
		f.enter(config, own)
		config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
		config.CurrentContext = name
		data, err := json.Marshal(note)
		if err == nil {
			_, err = f.WritePrivate(mergedFile, data)
		}
		return err
	})
}

// edit applies change to the kubeconfig at path, which may not exist yet.
func edit(path string, change func(*api.Config) error) error {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	before := config.DeepCopy()
	if err := change(config); err != nil || reflect.DeepEqual(before, config) {
		return err
	}
	if data, err = clientcmd.Write(*config); err != nil {
		return err
	}
	return host.WriteFile(path, data, 0o600)
}

// Unmerge removes the entries that Merge added and restores the current context.
// It removes the file if Merge created it and nothing else is in it.
func Unmerge(ctx context.Context, options session.Selection) error {
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
	name, empty := f.entry(), false
	err := edit(note.Path, func(config *api.Config) error {
		delete(config.Clusters, name)
		delete(config.AuthInfos, name)
		delete(config.Contexts, name)
		if config.CurrentContext == name {
			config.CurrentContext = ""
			if config.Contexts[note.Context] != nil {
				config.CurrentContext = note.Context
			}
		}
		empty = len(config.Clusters)+len(config.AuthInfos)+len(config.Contexts) == 0
		return nil
	})
	if err == nil && empty && note.Created {
		err = os.Remove(note.Path)
	}
	return err
}

// Update updates the entries that Merge wrote, after the cluster got
// other certificates or another address, because it was created again or
// restored from an earlier cluster. It does not add entries that the user has
// removed.
func Update(ctx context.Context, s *session.Session) error {
	f := files{s.Selection}
	note, err := f.merged()
	if err != nil || note == nil {
		return err
	}
	if _, err := os.Stat(note.Path); err != nil {
		return nil // the user has removed the file
	}
	own, err := load(ctx, s)
	if err != nil {
		return err
	}
	return locked(ctx, note.Path, func() error { return f.renew(note.Path, own) })
}

func (f files) renew(path string, own *api.Config) error {
	return edit(path, func(config *api.Config) error {
		if config.Contexts[f.entry()] != nil {
			f.enter(config, own)
		}
		return nil
	})
}

// enter copies the only cluster and user of own into config.
func (f files) enter(config, own *api.Config) {
	name := f.entry()
	for _, c := range own.Clusters {
		config.Clusters[name] = c
	}
	for _, u := range own.AuthInfos {
		config.AuthInfos[name] = u
	}
}

// merged returns the note of Merge; nil if the cluster is not merged.
func (f files) merged() (*merged, error) {
	path := filepath.Join(f.PrivateDir(), mergedFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var note merged
	if err := json.Unmarshal(data, &note); err != nil {
		return nil, fmt.Errorf("%s: %w; remove this file, and the entries %s from your kubeconfig",
			path, err, f.entry())
	}
	return &note, nil
}
