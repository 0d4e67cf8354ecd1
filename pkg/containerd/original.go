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
func recordsDiff(files host.Files) (step.Diff, error) {
	diff, err := beforeRecord.Diff(files)
	if err != nil {
		return nil, err
	}
	lost, err := lostOriginal(files)
	if lost != nil {
		diff = append(diff, "work out what "+configPath+" was before: "+lost.Error())
	}
	return diff, err
}

// lostOriginal returns why the saved original of config.toml cannot be used, or nil if it can, or
// if kube-bootstrap never wrote the file.
func lostOriginal(files host.Files) (lost, err error) {
	data, err := files.UserFile(configPath).Original()
	switch {
	case err == nil:
		if err := toml.Unmarshal(data, &map[string]any{}); err != nil {
			return fmt.Errorf("its record is damaged: %w", err), nil
		}
		return nil, nil
	case host.IsDamaged(err):
		return err, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	now, err := currentConfig(files)
	if bytes.HasPrefix(now, []byte(configMark)) {
		return errors.New("its record is missing"), nil
	}
	return nil, err
}

// recoverOriginal reconstructs a lost original of config.toml: the current file without the
// settings of kube-bootstrap. It returns why the original was lost.
func recoverOriginal(ctx context.Context, files host.Files, w wanted) (lost, err error) {
	if lost, err = lostOriginal(files); err != nil || lost == nil {
		return nil, err
	}
	now, err := currentConfig(files)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(now, []byte(configMark)) {
		return nil, files.UserFile(configPath).Forget() // the file is unchanged by kube-bootstrap
	}
	owner, err := withoutOurs(now, w)
	if err != nil {
		return nil, err
	}
	if err := validate(ctx, owner); err != nil {
		return nil, err
	}
	return lost, files.UserFile(configPath).Keep(owner)
}

func (c CRI) putBackConfig(ctx context.Context) error {
	lost, err := recoverOriginal(ctx, c.Pods.Files, c.wanted())
	if err != nil {
		return err
	}
	if lost != nil {
		step.Leave(ctx, fmt.Sprintf("%s: %v, so only kube-bootstrap's settings were removed; it is unknown whether CRI was disabled before", configPath, lost))
	}
	original, err := c.Pods.Files.UserFile(configPath).Original()
	if errors.Is(err, fs.ErrNotExist) && !c.Pods.Files.Exists(pendingFile) {
		return nil
	}
	write := func() error { return c.Pods.Files.UserFile(configPath).PutBack(ctx) }
	if err := c.restartWith(ctx, original, write, c.Pods.Socket.serves); err != nil {
		return err
	}
	return c.Pods.Files.Remove(pendingFile)
}

// validate makes containerd read a config before it is restarted with it; no data is no config.
func validate(ctx context.Context, data []byte) error {
	if len(data) == 0 || !host.HasProgram("containerd") {
		return nil
	}
	err := host.WithTempFile("containerd-*.toml", data, func(path string) error {
		_, err := host.Run(ctx, "containerd", "--config", path, "config", "dump")
		return err
	})
	if err != nil {
		return configProblem("containerd would not start with it: " + err.Error())
	}
	return nil
}
