// Package containerd makes the containerd behind the main Docker run pods: it enables CRI, configures CNI for docker0,
// and removes everything that pods leave behind.
package containerd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pelletier/go-toml/v2"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	unit       = "containerd"
	configPath = "/etc/containerd/config.toml"
	// pendingFile exists while a new config waits for containerd's restart.
	pendingFile = host.StateDir + "/containerd-restart"
	namespace   = "k8s.io" // CRI's namespace
)

// CRI is the configuration of containerd's CRI plugin.
type CRI struct {
	Pods         Pods // what existed before them remains after Undo
	Units        initsystem.Units
	SandboxImage string // the pause image; it is never collected
	KeepImages   bool   // Undo leaves the images of pods
	Registry     bool   // private registry configuration is expected
}

// CgroupDriver returns the cgroup driver of containerd and the kubelet: "systemd" or "cgroupfs".
func CgroupDriver() string {
	if initsystem.Open().Init() == "systemd" && kernel.CgroupV2() {
		return "systemd"
	}
	return "cgroupfs"
}

// Enable is the step that configures containerd for pods and restarts it if necessary. Containers survive the restart,
// because each has its own shim.
func (c CRI) Enable() step.Step {
	return step.Step{
		ID: "cri", Name: "turn on containerd's CRI",
		Check: func(ctx context.Context) (step.Diff, error) {
			_, diff, err := c.config(ctx)
			if err == nil && len(diff) == 0 {
				err = c.checkImported(ctx)
			}
			if err != nil {
				return nil, err
			}
			records, err := recordsDiff(c.Pods.Files)
			if err != nil {
				return nil, err
			}
			diff = append(diff, records...)
			restart, err := c.restartDiff(ctx)
			return append(diff, restart...), err
		},
		Apply: c.enable,
		Undo:  c.disable,
	}
}

func (c CRI) enable(ctx context.Context) error {
	if err := c.Pods.note(ctx); err != nil {
		return err
	}
	if _, err := recoverOriginal(ctx, c.Pods.Files, c.wanted()); err != nil {
		return err
	}
	if err := c.configure(ctx); err != nil {
		return err
	}
	if err := c.Pods.createNamespace(ctx); err != nil {
		return err
	}
	return c.Pods.Files.Remove(pendingFile)
}

// configure restarts containerd with the wanted config, if that is necessary.
func (c CRI) configure(ctx context.Context) error {
	data, diff, err := c.config(ctx)
	if err != nil {
		return err
	}
	restart, err := c.awaitRestartDiff(ctx)
	if err != nil || len(diff)+len(restart) == 0 {
		return err
	}
	write := func() error {
		if len(diff) == 0 {
			return nil
		}
		return c.Pods.Files.UserFile(configPath).Replace(data, 0o644)
	}
	if err := c.ineffective(ctx, data); err != nil {
		return err
	}
	return c.restartWith(ctx, write, c.Pods.Socket.criServes)
}

func (c CRI) disable(ctx context.Context) error {
	b, err := c.Pods.before(ctx)
	if err != nil {
		return err
	}
	if !c.KeepImages {
		if err := c.Pods.Socket.removeImages(ctx, b); err != nil {
			return fmt.Errorf("empty containerd's namespace %s: %w", namespace, err)
		}
	}
	if err := c.putBackConfig(ctx); err != nil {
		return err
	}
	if err := c.removePaths(ctx, b); err != nil {
		return err
	}
	if c.KeepImages {
		return nil // the next turndown, which removes the images, needs beforeRecord
	}
	return c.Pods.Files.Remove(beforeRecord.Path)
}

// removePaths removes what only a containerd with CRI uses.
func (c CRI) removePaths(ctx context.Context, b before) error {
	paths := criPaths
	if c.Pods.Socket.criServes(ctx) == nil { // CRI was enabled before
		paths = []string{criRoot}
	}
	return removePaths(c.Pods.Files, paths, FindDirs(c.Pods.Files), b)
}

// restartWith restarts containerd with the config that write writes. The caller removes pendingFile.
func (c CRI) restartWith(ctx context.Context, write func() error, serves func(context.Context) error) error {
	if err := c.Pods.Files.Write(pendingFile, nil, 0o600); err != nil {
		return err
	}
	if err := write(); err != nil || c.startsLater() {
		return err
	}
	step.Report(ctx, "restarting containerd", 0, 0)
	if err := c.Units.Restart(ctx, unit); err != nil {
		return err
	}
	return step.Until(ctx, serves, nil)
}

// startsLater reports whether containerd's init script is not installed yet, or already removed. containerd will read
// the current config when it starts.
func (c CRI) startsLater() bool {
	return c.Units.Init() != "systemd" && !c.Pods.Files.Exists("/etc/init.d/"+unit)
}

func (c CRI) restartDiff(ctx context.Context) (step.Diff, error) {
	if c.Pods.Files.Exists(pendingFile) {
		return step.Diff{"restart containerd"}, nil
	}
	if c.startsLater() {
		return nil, nil
	}
	err := c.Pods.Socket.criServes(ctx)
	return step.DiffOf(err, fmt.Sprintf("restart containerd: %v", err))
}

// awaitRestartDiff waits for a slow containerd, so that it is not restarted without need. Without an answer within the
// limit, the diff is a restart.
func (c CRI) awaitRestartDiff(ctx context.Context) (diff step.Diff, err error) {
	err = step.Until(ctx, func(ctx context.Context) error {
		diff, err = c.restartDiff(ctx)
		return err
	}, nil)
	if err != nil && ctx.Err() == nil {
		return step.Diff{"restart containerd: " + err.Error()}, nil
	}
	return diff, err
}

// config returns the wanted config file, and its differences from the current one.
func (c CRI) config(ctx context.Context) ([]byte, step.Diff, error) {
	now, err := currentConfig(c.Pods.Files)
	if err != nil {
		return nil, nil, err
	}
	installed, err := installedVersion(ctx)
	if err != nil {
		return nil, nil, err
	}
	return mergeConfig(now, installed.Major(), c.wanted())
}

func (c CRI) wanted() wanted {
	return wanted{
		SandboxImage:  c.SandboxImage,
		SystemdCgroup: CgroupDriver() == "systemd",
		RestrictOOM:   !process.CanLowerOOMScore(),
		Registry:      c.Registry,
	}
}

// recordsDiff verifies the records that only Undo reads.
func recordsDiff(files host.Files) (step.Diff, error) {
	diff, err := beforeRecord.Diff(files)
	lost, lostErr := lostOriginal(files)
	if lost != nil {
		diff = append(diff, "work out what "+configPath+" was before: "+lost.Error())
	}
	return diff, errors.Join(err, lostErr)
}

// lostOriginal returns why the saved original of config.toml cannot be used, or nil if it can, or if kube-bootstrap
// never wrote the file.
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

// recoverOriginal reconstructs a lost original of config.toml: the current file without the settings of
// kube-bootstrap. It returns why the original was lost.
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
	return lost, files.UserFile(configPath).SaveOriginal(owner)
}

func (c CRI) putBackConfig(ctx context.Context) error {
	lost, err := recoverOriginal(ctx, c.Pods.Files, c.wanted())
	if err != nil {
		return err
	}
	if lost != nil {
		step.Leave(ctx, fmt.Sprintf("%s: %v, so only kube-bootstrap's settings were removed; it is unknown whether "+
			"CRI was disabled before", configPath, lost))
	}
	original, err := c.Pods.Files.UserFile(configPath).Original()
	if errors.Is(err, fs.ErrNotExist) && !c.Pods.Files.Exists(pendingFile) {
		return nil
	}
	write := func() error { return c.Pods.Files.UserFile(configPath).PutBack(ctx) }
	if err := validate(ctx, original); err != nil {
		return err
	}
	if err := c.restartWith(ctx, write, c.Pods.Socket.serves); err != nil {
		return err
	}
	return c.Pods.Files.Remove(pendingFile)
}

// validate makes containerd read the owner's config before it is restarted with it; no data is no config.
func validate(ctx context.Context, data []byte) error {
	if len(data) == 0 || MissingProblem() != nil {
		return nil
	}
	_, err := usedConfig(ctx, data)
	return err
}
