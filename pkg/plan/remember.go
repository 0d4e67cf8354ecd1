package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// remember is the first step to be applied and the last one to be undone. It
// saves the role and the first settings, for turndown, status and the units. On an
// installed host, the settings in force stay until accept, so that a failed run does
// not change them. Turndown does not depend on settings that can change.
func remember(h *local.Host, role string) step.Step {
	first := func() ([]host.File, error) { return firstFiles(h, role) }
	files := h.Files.Step("remember-settings", "remember the settings", first)
	return step.Step{
		ID: files.ID, Name: files.Name, Check: files.Check,
		Apply: func(ctx context.Context) error {
			if err := files.Apply(ctx); err != nil {
				return err
			}
			return h.Files.Remove(local.KeptImagesFile)
		},
		Undo: func(ctx context.Context) error {
			look := func(ctx context.Context) error { return nothingLeft(ctx, h) }
			if err := host.Concurrently(ctx, look, h.Units.Reload); err != nil {
				return err
			}
			return forget(h, role)
		},
	}
}

// installProgram is the step that copies this program to the path that the units name. The Undo of
// remember removes it, after the steps that need it.
func installProgram(files host.Files) step.Step {
	missing := func(context.Context) (bool, error) { return !process.SelfInstalled(files, local.Binary), nil }
	return step.When("install-program", "install kube-bootstrap", "write "+local.Binary, missing,
		func(context.Context) error { return process.InstallSelf(files, local.Binary) })
}

// accept saves the settings of a run after all other steps have succeeded,
// forgets an upgrade that is finished or taken back, and allows the agent to repair the host.
func accept(h *local.Host, role string) step.Step {
	keep := h.Files.StepWith("keep-settings", "keep the settings", func() ([]host.File, error) {
		files, err := settingsFiles(h, role)
		return append(files, local.CompleteMark), err
	}, func(_ context.Context, tree []host.File) error {
		last := len(tree) - 1
		return cmp.Or(h.Files.Put(tree[:last]), endUpgrade(h), h.Files.Put(tree[last:]))
	})
	check := keep.Check
	keep.Check = func(ctx context.Context) (step.Diff, error) {
		diff, err := check(ctx)
		if upgradeEnds(h) {
			diff = append(diff, "remove "+upgrade.File.Path)
		}
		return diff, err
	}
	return keep
}

// firstFiles returns the files that are saved at the start of the first run. The
// role is the last one, because it states that the other files are complete.
func firstFiles(h *local.Host, role string) ([]host.File, error) {
	last := host.File{Path: local.RoleFile, Data: []byte(role + "\n")}
	if h.Saved.Role == role {
		return []host.File{last}, nil
	}
	files, err := settingsFiles(h, role)
	return append(files, last), err
}

func settingsFiles(h *local.Host, role string) ([]host.File, error) {
	cfg := h.Config
	if role == local.Loaded {
		cfg = local.Portable(h)
	}
	settings, settingsErr := file.Marshal(cfg)
	versions, err := json.Marshal(h.VersionsOf(role))
	if err := cmp.Or(settingsErr, err); err != nil {
		return nil, err
	}
	files := []host.File{{Path: config.SavedPath, Data: settings}, {Path: local.VersionsFile, Data: versions}}
	files = append(files, local.KeyFiles(h)...)
	owners, err := local.OwnersFile(h)
	if err != nil {
		return nil, err
	}
	files = append(files, owners)
	if h.Registry == nil {
		return files, nil
	}
	way, err := h.Registry.Marshal()
	return append(files, host.File{Path: registry.SavedPath, Data: way}), err
}

// forget removes the logs, and all saved state or all but the record of kept images.
func forget(h *local.Host, role string) error {
	if err := h.Files.RemoveAll(host.LogDir); err != nil {
		return err
	}
	if !h.Config.KeepImages {
		return h.Files.RemoveAll(host.StateDir)
	}
	if h.Saved.Lost == nil && role != local.Loaded {
		settings, err := file.Marshal(local.Transferable(h.Config)) // the host may become another one
		if err = errors.Join(err, h.Files.Put([]host.File{{Path: config.SavedPath, Data: settings}})); err != nil {
			return err
		}
	}
	if err := h.Files.Write(local.KeptImagesFile, []byte(role+"\n"), 0o600); err != nil {
		return err
	}
	return h.Files.Drop(
		local.Binary, local.CompleteFile, local.OpenFile, registry.SavedPath,
		local.RoleFile, local.OwnersPath, local.RestoringFile, local.RecoveringFile, etcd.LeftFile)
}

// madeDirs is the step that repairs the record of created directories, with
// the directories that any host may have. /etc/cni/net.d is not among them,
// because containerd creates it and exits when it is removed.
func madeDirs(files host.Files) step.Step {
	return host.CreatedDirs(files, append(controlplane.Dirs(), kubelet.Dir, kubelet.Dir+"/pki",
		"/opt/cni", image.CNIDir, "/var/lib/cni", "/var/log/pods", "/var/log/containers", "/var/log/kubernetes"))
}
