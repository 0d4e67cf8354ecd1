// Package containerd makes the containerd behind the main Docker run pods: it
// enables CRI, configures CNI for docker0, and removes everything that pods
// leave behind.
package containerd

import (
	"context"
	"fmt"
	"os"

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

// CgroupDriver returns the cgroup driver that suits this host, "systemd" or
// "cgroupfs": containerd and the kubelet must have the same one.
func CgroupDriver() string {
	if _, err := os.Stat("/run/systemd/system"); err == nil && kernel.CgroupV2() {
		return "systemd"
	}
	return "cgroupfs"
}

// Enable is the step that configures containerd for pods and restarts it if
// necessary. Containers survive the restart, because each has its own shim.
func (c CRI) Enable() step.Step {
	return step.Step{
		Name: "turn on containerd's CRI",
		Check: func(ctx context.Context) (step.Diff, error) {
			_, diff, err := c.config(ctx)
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
	return c.restartWith(ctx, data, write, c.Pods.Socket.criServes)
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
	if err := removePath(c.Pods.Files, criRoot, b); err != nil {
		return err
	}
	if c.KeepImages {
		return nil // the next turndown, which removes the images, needs beforeRecord
	}
	return c.Pods.Files.Remove(beforeRecord.Path)
}

// restartWith restarts containerd with the config data, which write writes.
// The caller removes pendingFile when it has completed.
func (c CRI) restartWith(ctx context.Context, data []byte, write func() error, serves func(context.Context) error) error {
	if err := validate(ctx, data); err != nil {
		return err
	}
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

// startsLater reports whether containerd's init script is not installed yet, or already removed.
// containerd will read the current config when it starts.
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

// awaitRestartDiff waits for a slow containerd, so that it is not restarted without need. Without
// an answer within the limit, the diff is a restart.
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
