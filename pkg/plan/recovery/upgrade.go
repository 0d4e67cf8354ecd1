package recovery

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"filippo.io/age"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// UpgradeDir has the backups that `upgrade apply` makes. The key that opens them lies beside them: the disk has the
// data of etcd and all keys in plain text too. `turndown` removes the directory.
const UpgradeDir = host.StateDir + "/upgrades"

const (
	upgradeKey    = UpgradeDir + "/backup.key"
	upgradeSuffix = ".backup"
	upgradeKept   = 2 // number of backups, so that a failed attempt does not remove the one from before it
)

// BeforeUpgrade is the plan that backs up the cluster of a control plane before the first change of an upgrade.
func BeforeUpgrade(h *local.Host, program string) step.Plan {
	first := h.Saved.Role == local.ControlPlane && !h.Files.Exists(upgrade.File.Path)
	return step.Plan{{step.Always("upgrade-backup", "back up the cluster", func(ctx context.Context) error {
		return saveUpgrade(ctx, h, program)
	}).If(first)}}
}

func saveUpgrade(ctx context.Context, h *local.Host, program string) error {
	if err := h.Files.MkdirPrivate(UpgradeDir); err != nil {
		return err
	}
	key, err := upgradeIdentity(h.Files)
	if err != nil {
		return err
	}
	name := h.Config.HostName + "-" + time.Now().UTC().Format("20060102T150405Z") + upgradeSuffix
	path := filepath.Join(UpgradeDir, name)
	if err := Create(ctx, h, program, h.Files.Path(path), []age.Recipient{key.Recipient()}); err != nil {
		return err
	}
	step.Report(ctx, "the backup is "+path, 0, 0)
	return dropOld(h.Files)
}

// upgradeIdentity returns the key of the backups of this host, and makes it the first time.
func upgradeIdentity(files host.Files) (*age.X25519Identity, error) {
	text, err := files.Read(upgradeKey)
	if err == nil {
		return age.ParseX25519Identity(string(text))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	return key, files.Write(upgradeKey, []byte(key.String()), 0o600)
}

// dropOld removes all backups but the newest ones. Their names end with the time.
func dropOld(files host.Files) error {
	all := files.Match(UpgradeDir + "/*" + upgradeSuffix)
	slices.Sort(all)
	var errs []error
	for _, path := range all[:max(0, len(all)-upgradeKept)] {
		errs = append(errs, files.Remove(path))
	}
	return errors.Join(errs...)
}
