package offline

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"

	digest "github.com/opencontainers/go-digest"
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
	if err := p.Files.Remember(pluginRecordPath, record); err != nil {
		return err
	}
	return p.Files.Write(pluginPath(name), data, 0o755)
}

func (p plugins) record() (pluginRecord, error) {
	record := pluginRecord{}
	_, err := p.Files.Recall(pluginRecordPath, &record)
	return record, err
}

func (p plugins) undo(context.Context) error {
	record, err := p.record()
	if err != nil || len(record) == 0 {
		return err
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
