package plan

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// remember keeps the settings and this program on the host, so that turndown,
// status and the boot unit need nothing else. It is the first step to be done
// and the last one to be undone.
func (h *Host) remember(role string) step.Step {
	tree := func() ([]host.File, error) {
		settings, err := h.Config.Marshal()
		if err != nil {
			return nil, err
		}
		versions, err := json.Marshal(h.versionsOf(role))
		if err != nil {
			return nil, err
		}
		files := []host.File{{Path: config.SavedPath, Data: settings}, {Path: versionsFile, Data: versions}}
		if h.registry != nil {
			way, err := h.registry.Marshal()
			if err != nil {
				return nil, err
			}
			files = append(files, host.File{Path: registry.SavedPath, Data: way})
		}
		return append(files, host.File{Path: roleFile, Data: []byte(role + "\n")}), nil
	}
	return step.Step{
		Name: "remember the settings",
		Check: func(context.Context) (step.Diff, error) {
			files, err := tree()
			if err != nil {
				return nil, err
			}
			diff, err := h.Files.Missing(files)
			if !h.Files.SelfInstalled(Binary) {
				diff = append(diff, "write "+Binary)
			}
			return diff, err
		},
		Apply: func(context.Context) error {
			files, err := tree()
			if err != nil {
				return err
			}
			if err := h.Files.Put(files); err != nil {
				return err
			}
			return errors.Join(h.Files.InstallSelf(Binary), h.Files.Remove(keptFile))
		},
		Undo: func(context.Context) error { return h.forget(role) },
	}
}

// keptFile is what a host was whose images were kept: it is no part of a
// cluster any more, but there is something left to take back.
const keptFile = host.StateDir + "/kept"

// forget leaves no memory, but of images that were to stay.
func (h *Host) forget(role string) error {
	if !h.Config.KeepImages {
		return h.Files.RemoveAll(host.StateDir)
	}
	if err := h.Files.Write(keptFile, []byte(role+"\n"), 0o600); err != nil {
		return err
	}
	return h.Files.Drop(Binary, registry.SavedPath, roleFile)
}
