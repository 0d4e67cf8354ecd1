package containerd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pelletier/go-toml/v2"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// recordsDiff verifies the records that only Undo reads.
func (r Runtime) recordsDiff() (step.Diff, error) {
	diff, err := beforeRecord.Diff(r.Files)
	if err != nil {
		return nil, err
	}
	lost, err := r.lostOriginal()
	if lost != nil {
		diff = append(diff, "work out what "+configPath+" was before: "+lost.Error())
	}
	return diff, err
}

// lostOriginal returns why the saved original of config.toml cannot be used.
// It returns nil if it can be used, or if kube-bootstrap never wrote the
// file.
func (r Runtime) lostOriginal() (lost, err error) {
	data, err := r.Files.Original(configPath)
	if err == nil {
		if err = toml.Unmarshal(data, &map[string]any{}); err != nil {
			return fmt.Errorf("its record is damaged: %w", err), nil
		}
		return nil, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		if host.IsDamaged(err) {
			return err, nil
		}
		return nil, err
	}
	now, err := r.Files.Read(configPath)
	if bytes.HasPrefix(now, []byte(configMark)) {
		return errors.New("its record is missing"), nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return nil, err
}

// recoverOriginal reconstructs a lost original of config.toml: the current
// file without the settings of kube-bootstrap. It returns why the original
// was lost.
func (r Runtime) recoverOriginal(ctx context.Context) (lost, err error) {
	if lost, err = r.lostOriginal(); err != nil || lost == nil {
		return nil, err
	}
	now, err := r.Files.Read(configPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if !bytes.HasPrefix(now, []byte(configMark)) {
		return nil, r.Files.Forget(configPath) // the file is unchanged by kube-bootstrap
	}
	owner, err := withoutOurs(now, r.wanted())
	if err != nil {
		return nil, err
	}
	if err := r.validate(ctx, owner); err != nil {
		return nil, err
	}
	return lost, r.Files.KeepOriginal(configPath, owner)
}

func (r Runtime) putBackConfig(ctx context.Context) error {
	lost, err := r.recoverOriginal(ctx)
	if err != nil {
		return err
	}
	if lost != nil {
		step.Leave(ctx, fmt.Sprintf("%s: %v, so only kube-bootstrap's settings were removed; it is unknown whether CRI was disabled before", configPath, lost))
	}
	original, err := r.Files.Original(configPath)
	if errors.Is(err, fs.ErrNotExist) && !r.Files.Exists(pendingFile) {
		return nil
	}
	if err := r.validate(ctx, original); err != nil {
		return err
	}
	if err := r.Files.Write(pendingFile, nil, 0o600); err != nil {
		return err
	}
	if err := r.Files.PutBack(ctx, configPath); err != nil {
		return err
	}
	if !r.startsLater() {
		if err := r.restart(ctx, r.serves); err != nil {
			return err
		}
	}
	return r.Files.Remove(pendingFile)
}

// validate makes containerd read a config before it is restarted with it.
// Empty data stands for no config.
func (Runtime) validate(ctx context.Context, data []byte) error {
	if len(data) == 0 || !host.HasProgram("containerd") {
		return nil
	}
	err := host.WithTempFile("containerd-*.toml", data, func(path string) error {
		_, err := host.Run(ctx, "containerd", "--config", path, "config", "dump")
		return err
	})
	if err != nil {
		return &step.Problem{Name: "containerd-config", Text: configPath + ": containerd would not start with it: " + err.Error(), Remedy: "correct it"}
	}
	return nil
}
