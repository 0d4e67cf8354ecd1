package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
)

// preparedDisk returns the prepared disk for hosts with the host image of n.
func (c change) preparedDisk(ctx context.Context, n topology.ClusterNode) (testhost.PreparedDisk, error) {
	key, err := c.preparedKey(n)
	if err != nil {
		return testhost.PreparedDisk{}, err
	}
	return testhost.FindPreparedDisk(ctx, c.cluster, key)
}

// preparedKey returns a hash of everything that determines the content of a prepared disk. It
// returns "" if the hosts pull their images, or if this machine does not have the bundle.
func (c change) preparedKey(n topology.ClusterNode) (string, error) {
	bundles, err := c.bundles()
	if err != nil || len(bundles) == 0 {
		return "", err
	}
	program, err := remote.Sum(c.options.Binary)
	if err != nil {
		return "", err
	}
	all, err := json.Marshal([]any{c.machine(n).Image(), program, bundles, c.source.args(), c.options.LoadArgs})
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:]), err
}

// bundles returns the identities of the bundles that the hosts load. It returns none if this
// machine does not have all of them: another client may have sent them to a remote engine.
func (c change) bundles() (identities []string, err error) {
	for _, name := range c.source.names() {
		b, err := bundle.Open(c.bundlePath(name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		identities = append(identities, b.Identity().String())
		if err := b.Close(); err != nil {
			return nil, err
		}
	}
	return identities, nil
}

// bundlePath returns the path of a shared bundle on this machine, before or after it is shared.
func (c change) bundlePath(name string) string {
	files := c.options.sharedFiles()
	if i := slices.IndexFunc(files, func(f testhost.SharedFile) bool { return f.Name == name }); i >= 0 {
		return files[i].From
	}
	return filepath.Join(c.cluster.Session.SharedDir(), name)
}
