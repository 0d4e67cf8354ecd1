package offline

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// install keeps what the owner has there, notes it, and only then writes.
func (p plugins) install(name string, data []byte, ours digest.Digest) error {
	record, err := p.record()
	if err != nil {
		return err
	}
	entry, again := record[name]
	old, err := p.Files.Read(pluginPath(name))
	owners := err == nil && (!again || entry.Ours != digest.FromBytes(old))
	if owners && digest.FromBytes(old) != ours {
		if err := p.Files.Write(path.Join(keptPlugins, name), old, 0o755); err != nil {
			return err
		}
		entry.Kept, entry.Mode = true, p.mode(name)
	}
	entry.Ours = ours
	record[name] = entry
	if err := pluginNotes.Write(p.Files, record); err != nil {
		return err
	}
	return p.Files.Write(pluginPath(name), data, 0o755)
}

func (p plugins) record() (pluginRecord, error) {
	record, err := pluginNotes.Read(p.Files)
	if host.Lost(err) {
		return p.workOut()
	}
	return record, err
}

// workOut tells which plugins are ours without the record: those in a directory
// that we made, and those whose predecessor was kept.
func (p plugins) workOut() (pluginRecord, error) {
	record := pluginRecord{}
	for _, name := range image.CNIPlugins {
		kept := p.Files.Exists(path.Join(keptPlugins, name))
		data, err := p.Files.Read(pluginPath(name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !kept && !p.Files.Made(image.CNIDir) {
			continue
		}
		if err != nil {
			return nil, err
		}
		record[name] = plugin{Ours: digest.FromBytes(data), Kept: kept, Mode: 0o755}
	}
	return record, nil
}

// recordDiff asks for a usable record where there are plugins of ours.
func (p plugins) recordDiff() (step.Diff, error) {
	record, err := p.record()
	if err != nil || len(record) == 0 && !p.Files.Exists(pluginRecordPath) {
		return nil, err
	}
	return pluginNotes.Diff(p.Files)
}

func (p plugins) undo(ctx context.Context) error {
	record, err := p.record()
	if err != nil {
		return err
	}
	if len(record) == 0 && p.Files.Exists(pluginRecordPath) {
		step.Leave(ctx, "the plugins in "+image.CNIDir+": nobody knows which are kube-bootstrap's, as "+pluginRecordPath+" is damaged")
	}
	for name, entry := range record {
		now, err := p.Files.Read(pluginPath(name))
		if err == nil && digest.FromBytes(now) != entry.Ours {
			continue // replaced by someone else since: theirs to keep
		}
		if err := p.putBack(name, entry.Kept, entry.Mode); err != nil {
			return err
		}
	}
	return errors.Join(p.Files.RemoveAll(keptPlugins), p.Files.Remove(pluginRecordPath))
}

func (p plugins) putBack(name string, kept bool, mode os.FileMode) error {
	if !kept {
		return p.Files.Remove(pluginPath(name))
	}
	old, err := p.Files.Read(path.Join(keptPlugins, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // put back already, by an Undo that was cut short
	}
	if err != nil {
		return err
	}
	return p.Files.Write(pluginPath(name), old, mode)
}

// replaceRecord removes a record that would name no plugin.
func (p plugins) replaceRecord(record pluginRecord) error {
	if len(record) == 0 {
		return p.Files.Remove(pluginRecordPath)
	}
	return pluginNotes.Write(p.Files, record)
}
