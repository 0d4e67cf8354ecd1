package local

import (
	"errors"
	"slices"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// InForce returns the host with its saved settings, or the problem that they are lost.
func InForce(files host.Files) (*Host, error) {
	saved, err := savedInForce(files)
	if err != nil {
		return nil, err
	}
	return open(files, saved, saved.Config, nil)
}

func savedInForce(files host.Files) (Saved, error) {
	saved, err := ReadSaved(files)
	return saved, errors.Join(err, saved.Lost)
}

// Current returns InForce again and again, and reads the settings only after a change of the files that it
// has read them from: the agent needs them for each event.
type Current struct {
	Files host.Files

	mu   sync.Mutex
	host *Host
	read []host.Identity // of sources, before host was read from them
}

// Host returns the host with its saved settings.
func (c *Current) Host() (*Host, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.host == nil || !slices.Equal(c.read, c.sources(c.host.Config)) {
		if err := c.readAgain(); err != nil {
			return nil, err
		}
	}
	current := *c.host
	current.Loads, current.Downloads = &bundle.Broadcast{}, &Downloads{}
	current.Join = joining(&current)
	return &current, nil
}

func (c *Current) readAgain() error {
	c.host = nil
	saved, err := savedInForce(c.Files)
	if err != nil {
		return err
	}
	// A run may write the files now. They are then read again after the next event.
	c.read = c.sources(saved.Config)
	c.host, err = open(c.Files, saved, saved.Config, nil)
	return err
}

// sources returns the identities of the files that InForce reads.
func (c *Current) sources(cfg config.Config) []host.Identity {
	return host.Identities(c.Files,
		RoleFile, KeptImagesFile, config.SavedPath, VersionsFile, OwnersPath, VerifyKeyFile, registry.SavedPath,
		join.ClusterCAFile, offline.HostPath, cfg.Bundle, upgrade.File.Path)
}
