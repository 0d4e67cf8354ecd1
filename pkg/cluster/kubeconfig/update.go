package kubeconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
)

// Update updates the entries that Merge wrote, after the cluster got
// other certificates or another address, because it was created again or
// restored from an earlier cluster. It does not add entries that the user has
// removed.
func Update(ctx context.Context, s *session.Session) error {
	f := files{s.Options}
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
	return locked(ctx, note.Path, func() error { return f.renew(*note, own) })
}

func (f files) renew(note merged, own *api.Config) error {
	return edit(note.Path, func(config *api.Config) error {
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
	data, err := os.ReadFile(filepath.Join(f.PrivateDir(), mergedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var note merged
	if err := json.Unmarshal(data, &note); err != nil {
		return nil, fmt.Errorf("%s: %w", mergedFile, err)
	}
	return &note, nil
}
