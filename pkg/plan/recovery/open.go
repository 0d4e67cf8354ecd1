package recovery

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"filippo.io/age"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Backup is a backup with everything that a restore needs.
type Backup struct {
	backup.Contents
	Settings local.Restored
}

// Open opens the backup in a file of this host, see Read.
func Open(path string, identities []age.Identity, to io.Writer) (*Backup, error) {
	from, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return Read(path, from, identities, to)
}

// Read reads and checks a backup to its end, and writes etcd's snapshot to to. All commands use it, so that `restore`
// accepts what `backup verify` accepts [backup-key, backup-damaged].
func Read(path string, from io.Reader, identities []age.Identity, to io.Writer) (*Backup, error) {
	contents, err := backup.Read(from, identities, to)
	if errors.Is(err, backup.ErrSealed) {
		return nil, &step.Problem{
			Name: "backup-key", Firm: true, Text: fmt.Sprintf("%s: %v", path, err),
			Remedy: "give the file with the private key of one of its recipients with --identity",
		}
	}
	b := &Backup{Contents: contents}
	if err == nil {
		err = b.check()
	}
	if err != nil {
		return nil, &step.Problem{
			Name: "backup-damaged", Firm: true, Text: fmt.Sprintf("%s cannot be restored: %v", path, err),
			Remedy: "use another backup; `kube-bootstrap backup list` shows the backups of a directory",
		}
	}
	return b, nil
}

func (b *Backup) check() error {
	settings, err := file.Saved(config.SavedPath, b.File(config.SavedPath))
	if err != nil {
		return fmt.Errorf("%s: %w", config.SavedPath, err)
	}
	if _, err := image.For(settings.KubernetesVersion, image.Versions{}); err != nil {
		return err
	}
	b.Settings = local.Restored{
		Config: settings, Host: b.Manifest.Host, Address: b.Manifest.Address,
		Registry: b.File(registry.SavedPath), Key: b.File(local.VerifyKeyFile),
	}
	if _, err := registry.Parse(b.Settings.Registry); err != nil {
		return err
	}
	return controlplane.CheckShared(b.Files)
}

// PlaceProblem returns the problem that another host of the cluster has the name or the address of this host
// [restore-place].
func (b *Backup) PlaceProblem(h *local.Host) error {
	name, ip := h.Config.HostName, h.IP()
	i := slices.IndexFunc(b.Manifest.Hosts, func(o backup.Host) bool {
		return o.Address == ip && o.Name != name || o.Name == name && !o.ControlPlane
	})
	if i < 0 {
		return nil
	}
	return &step.Problem{
		Name: "restore-place", Firm: true,
		Text: fmt.Sprintf("this host has the name %s and the address %s, and the backup has the host %s at %s",
			name, ip, b.Manifest.Hosts[i].Name, b.Manifest.Hosts[i].Address),
		Remedy: "give this host a name that no worker has, and an address that only a host of this name has " +
			"(--host-name, --ip-address)",
	}
}
