package cniplugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	recordPath = host.StateDir + "/cni-plugins.json"
	backupDir  = host.StateDir + "/original-cni"
)

// pluginRecord lists the installed plugins by name.
type pluginRecord map[string]plugin

type plugin struct {
	Installed digest.Digest `json:"ours"`
	Previous  digest.Digest `json:"previous,omitempty"` // of our plugin that Installed replaces, until it is written
	Kept      bool          `json:"kept,omitempty"`     // the plugin of the user that it replaced is in backupDir
	Mode      os.FileMode   `json:"mode,omitempty"`     // of the plugin of the user
}

var recordFile = host.Record[pluginRecord]{Path: recordPath, Valid: pluginRecord.valid}

func (r pluginRecord) valid() error {
	if len(r) == 0 {
		return errors.New("it names no plugin")
	}
	for name, p := range r {
		if !slices.Contains(image.CNIPlugins, name) {
			return fmt.Errorf("%q is not a plugin of the bundle", name)
		}
		if err := p.Installed.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// ours reports whether we have installed the plugin with this content.
func (p plugin) ours(content digest.Digest) bool {
	return content == p.Installed || content == p.Previous
}

// install writes a plugin.
func (i Installer) install(name string, data []byte) error {
	record, err := i.prepare(name, digest.FromBytes(data))
	if err != nil {
		return err
	}
	entry := record[name]
	if err := i.Files.Write(pluginPath(name), data, 0o755); err != nil || entry.Previous == "" {
		return err
	}
	entry.Previous = ""
	record[name] = entry
	return recordFile.Write(i.Files, record)
}

// prepare saves the plugin of the user and records that before the new plugin is written. If
// the current plugin is ours, it stays ours in the record until the new plugin is written.
func (i Installer) prepare(name string, sum digest.Digest) (pluginRecord, error) {
	record, err := i.record()
	if err != nil {
		return nil, err
	}
	entry := record[name]
	link, linkErr := i.Files.LinkTarget(pluginPath(name))
	old, err := i.Files.Read(pluginPath(name))
	now := digest.FromBytes(old)
	switch {
	case linkErr != nil:
		return nil, linkErr
	case link == "" && (err != nil || now == sum):
	case link == "" && entry.ours(now):
		entry.Previous = now
	default:
		if err := i.keep(name, link, old); err != nil {
			return nil, err
		}
		entry.Kept, entry.Mode = true, i.mode(name)
	}
	entry.Installed = sum
	record[name] = entry
	return record, recordFile.Write(i.Files, record)
}

// keep saves the plugin of the user. It saves a symbolic link as a link.
func (i Installer) keep(name, link string, data []byte) error {
	backup := path.Join(backupDir, name)
	if link != "" {
		return i.Files.Symlink(backup, link)
	}
	return i.Files.Write(backup, data, 0o755)
}

func (i Installer) record() (pluginRecord, error) {
	record, err := recordFile.Read(i.Files)
	if host.Lost(err) {
		return i.rebuildRecord()
	}
	return record, err
}

// rebuildRecord finds the installed plugins without the record: all plugins if we created the
// directory, otherwise the plugins with a backup.
func (i Installer) rebuildRecord() (pluginRecord, error) {
	record := pluginRecord{}
	for _, name := range image.CNIPlugins {
		kept := i.Files.Exists(path.Join(backupDir, name))
		data, err := i.Files.Read(pluginPath(name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !kept && !i.Files.Created(image.CNIDir) {
			continue
		}
		if err != nil {
			return nil, err
		}
		record[name] = plugin{Installed: digest.FromBytes(data), Kept: kept, Mode: 0o755}
	}
	return record, nil
}

// recordDiff returns what is wrong with the record, if there must be one.
func (i Installer) recordDiff() (step.Diff, error) {
	record, err := i.record()
	if err != nil || len(record) == 0 && !i.Files.Exists(recordPath) {
		return nil, err
	}
	return recordFile.Diff(i.Files)
}

// repairRecord replaces a damaged or missing record. It removes the record if no plugin is installed.
func (i Installer) repairRecord() error {
	diff, err := i.recordDiff()
	if err != nil || len(diff) == 0 {
		return err
	}
	record, err := i.record()
	if err != nil {
		return err
	}
	if len(record) == 0 {
		return i.Files.Remove(recordPath)
	}
	return recordFile.Write(i.Files, record)
}

func (i Installer) undo(ctx context.Context) error {
	record, err := i.record()
	if err != nil {
		return err
	}
	if len(record) == 0 && i.Files.Exists(recordPath) {
		step.Leave(ctx, "the plugins in "+image.CNIDir+": "+recordPath+
			" is damaged, so kube-bootstrap does not know its own plugins; remove the plugins that no network uses")
	}
	for name, entry := range record {
		if err := i.undoOne(ctx, name, entry); err != nil {
			return err
		}
	}
	return errors.Join(i.Files.RemoveAll(backupDir), i.Files.Remove(recordPath))
}

// undoOne removes a plugin or restores the original. It leaves a plugin that was changed since.
func (i Installer) undoOne(ctx context.Context, name string, entry plugin) error {
	at := pluginPath(name)
	now, err := i.Files.Read(at)
	changed := err == nil && !entry.ours(digest.FromBytes(now))
	link, err := i.Files.LinkTarget(path.Join(backupDir, name))
	switch {
	case err != nil:
		return err
	case entry.Kept && link != "":
		return i.restoreLink(ctx, at, link, changed)
	case entry.Kept:
		return i.restore(ctx, name, entry.Mode, changed)
	case changed:
		step.Leave(ctx, at+": it was changed since kube-bootstrap installed it; remove it if nothing needs it")
		return nil
	}
	return i.Files.Remove(at)
}

// restore restores the original. If the plugin was changed since, it writes the original under another name.
func (i Installer) restore(ctx context.Context, name string, mode os.FileMode, changed bool) error {
	at := pluginPath(name)
	old, err := i.Files.Read(path.Join(backupDir, name))
	now, _ := i.Files.Read(at)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && changed && bytes.Equal(now, old):
		return nil // an interrupted Undo has restored it already
	case err != nil:
		return err
	case changed:
		step.Leave(ctx, at+": it was changed since kube-bootstrap replaced it; the original is "+at+
			".before-kube-bootstrap")
		at += ".before-kube-bootstrap"
	}
	if err := i.Files.Write(at, old, mode); err != nil {
		return err
	}
	return i.Files.RemoveHalfWritten(at)
}

func (i Installer) restoreLink(ctx context.Context, at, target string, changed bool) error {
	now, err := i.Files.LinkTarget(at)
	switch {
	case err != nil || now == target: // an interrupted Undo has restored it already
		return err
	case changed:
		step.Leave(ctx, at+": it was changed since kube-bootstrap replaced it; it was a symbolic link to "+target)
		return nil
	}
	return i.Files.Symlink(at, target)
}
