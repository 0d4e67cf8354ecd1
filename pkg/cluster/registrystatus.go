package cluster

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/localregistry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
)

// LocalRegistry is the observed registry of a cluster.
type LocalRegistry struct {
	Address   string `json:"address"` // in the names of images
	Container string `json:"container"`
	Running   bool   `json:"running"`
}

// RegistryStatus returns the local registry that a cluster should have; nil for none.
func RegistryStatus(ctx context.Context, options session.Selection) (*LocalRegistry, error) {
	c, _, err := containers.Begin(ctx, options, session.Requirements{})
	if err != nil {
		return nil, err
	}
	defer c.Session.Close()
	record, err := c.Session.UpRecord(ctx)
	if err != nil || record == nil {
		return nil, err
	}
	made, err := record.Settings.Config()
	port := made.LocalRegistry
	if err != nil || port == 0 {
		return nil, err
	}
	name := testhost.RegistryName(c.Name)
	now, _, err := c.Attached(ctx, name)
	return &LocalRegistry{localregistry.Name(port), name, now.Running}, err
}
