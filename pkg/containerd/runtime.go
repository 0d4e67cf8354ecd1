// Package containerd makes the containerd behind the main Docker run pods: it
// enables CRI, configures CNI for docker0, and removes everything that pods
// leave behind.
package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/introspection"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	unit       = "containerd"
	configPath = "/etc/containerd/config.toml"
	// pendingFile exists while a new config waits for containerd's restart.
	pendingFile = host.StateDir + "/containerd-restart"
	namespace   = "k8s.io" // CRI's namespace
)

// Runtime is the containerd of this host.
type Runtime struct {
	Files        host.Files
	Units        host.Units
	Socket       string // /run/containerd/containerd.sock
	SandboxImage string // the pause image; it is never collected
	KeepImages   bool   // Undo leaves the images of pods
	Registry     bool   // private registry configuration is expected
	// Images lists the references of the images that the load steps load for
	// pods.
	Images []string
}

// CgroupDriver returns the cgroup driver that suits this host, "systemd" or
// "cgroupfs": containerd and the kubelet must have the same one.
func CgroupDriver() string {
	if _, err := os.Stat("/run/systemd/system"); err == nil && host.CgroupV2() {
		return "systemd"
	}
	return "cgroupfs"
}

// EnableCRI is the step that configures containerd for pods and restarts it
// if necessary. Containers survive the restart, because each has its own
// shim.
func (r Runtime) EnableCRI() step.Step {
	return step.Step{
		Name: "turn on containerd's CRI",
		Check: func(ctx context.Context) (step.Diff, error) {
			_, diff, err := r.config(ctx)
			if err != nil {
				return nil, err
			}
			records, err := r.recordsDiff()
			if err != nil {
				return nil, err
			}
			diff = append(diff, records...)
			restart, err := r.restartDiff(ctx)
			return append(diff, restart...), err
		},
		Apply: r.enable,
		Undo:  r.disable,
	}
}

func (r Runtime) enable(ctx context.Context) error {
	if err := r.noteBefore(ctx); err != nil {
		return err
	}
	if _, err := r.recoverOriginal(ctx); err != nil {
		return err
	}
	data, diff, err := r.config(ctx)
	if err != nil {
		return err
	}
	restart, err := r.awaitRestartDiff(ctx)
	if err != nil {
		return err
	}
	if len(diff) == 0 && len(restart) == 0 {
		return r.makeNamespace(ctx)
	}
	if err := r.validate(ctx, data); err != nil {
		return err
	}
	if err := r.Files.Write(pendingFile, nil, 0o600); err != nil {
		return err
	}
	if len(diff) > 0 {
		if err := r.Files.Replace(configPath, data, 0o644); err != nil {
			return err
		}
	}
	if !r.startsLater() {
		if err := r.restart(ctx, r.criServes); err != nil {
			return err
		}
	}
	if err := r.makeNamespace(ctx); err != nil {
		return err
	}
	return r.Files.Remove(pendingFile)
}

func (r Runtime) disable(ctx context.Context) error {
	b, err := r.before(ctx)
	if err != nil {
		return err
	}
	if !r.KeepImages {
		if err := r.removeImages(ctx, b); err != nil {
			return fmt.Errorf("empty containerd's namespace %s: %w", namespace, err)
		}
	}
	if err := r.putBackConfig(ctx); err != nil {
		return err
	}
	if err := r.removePath(criRoot, b); err != nil {
		return err
	}
	if r.KeepImages {
		return nil // the next turndown, which removes the images, needs beforeRecord
	}
	return r.Files.Remove(beforeRecord.Path)
}

func (r Runtime) restart(ctx context.Context, serves func(context.Context) error) error {
	step.Report(ctx, "restarting containerd", 0, 0)
	if err := r.Units.Restart(ctx, unit); err != nil {
		return err
	}
	return step.Until(ctx, serves, nil)
}

// startsLater reports whether containerd does not run because its init script
// is not installed yet, or already removed. It will read the current config
// when it starts.
func (r Runtime) startsLater() bool {
	return r.Units.Init() != "systemd" && !r.Files.Exists("/etc/init.d/"+unit)
}

func (r Runtime) restartDiff(ctx context.Context) (step.Diff, error) {
	if r.Files.Exists(pendingFile) {
		return step.Diff{"restart containerd"}, nil
	}
	if r.startsLater() {
		return nil, nil
	}
	err := r.criServes(ctx)
	return step.DiffOf(err, fmt.Sprintf("restart containerd: %v", err))
}

// awaitRestartDiff waits for a slow containerd, so that it is not restarted
// without need. If containerd does not answer within the limit, the diff is a
// restart.
func (r Runtime) awaitRestartDiff(ctx context.Context) (diff step.Diff, err error) {
	err = step.Until(ctx, func(ctx context.Context) error {
		diff, err = r.restartDiff(ctx)
		return err
	}, nil)
	if err != nil && ctx.Err() == nil {
		return step.Diff{"restart containerd: " + err.Error()}, nil
	}
	return diff, err
}

func (r Runtime) open(ctx context.Context) (*client.Client, error) {
	return client.New(r.Files.Path(r.Socket), client.WithDefaultNamespace(namespace), client.WithTimeout(step.CheckLimit(ctx)))
}

func (r Runtime) serves(ctx context.Context) error {
	return r.ask(ctx, func(context.Context, introspection.Service) error { return nil })
}

// criServes asks containerd whether the CRI plugin was loaded.
func (r Runtime) criServes(ctx context.Context) error {
	return r.ask(ctx, func(ctx context.Context, s introspection.Service) error {
		found, err := s.Plugins(ctx, "id==cri")
		if err != nil {
			return step.NoAnswer(err)
		}
		if len(found.Plugins) == 0 {
			return errors.New("its CRI is disabled")
		}
		if failed := found.Plugins[0].InitErr; failed != nil {
			return fmt.Errorf("its CRI did not start: %s", failed.Message)
		}
		return nil
	})
}

// notRunning is the error that no process listens on containerd's socket.
type notRunning struct{ error }

func (n notRunning) Unwrap() error { return n.error }

func (r Runtime) ask(ctx context.Context, question func(context.Context, introspection.Service) error) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	// The client would wait until the socket exists.
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", r.Files.Path(r.Socket))
	if err != nil && !step.IsUnanswered(step.Serves(err)) {
		return notRunning{fmt.Errorf("it does not run: %w", err)}
	}
	if err != nil {
		return step.NoAnswer(err)
	}
	conn.Close()
	c, err := r.open(ctx)
	if err != nil {
		return step.NoAnswer(err)
	}
	defer c.Close()
	if ok, err := c.IsServing(ctx); err != nil || !ok {
		return step.NoAnswer(fmt.Errorf("it does not answer: %w", errors.Join(err, ctx.Err())))
	}
	return question(ctx, c.IntrospectionService())
}

// config returns the wanted config file, and its differences from the current
// one.
func (r Runtime) config(ctx context.Context) ([]byte, step.Diff, error) {
	now, err := r.Files.Read(configPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	major, err := majorVersion(ctx)
	if err != nil {
		return nil, nil, err
	}
	return mergeConfig(now, major, r.wanted())
}

func (r Runtime) wanted() wanted {
	return wanted{
		SandboxImage:  r.SandboxImage,
		SystemdCgroup: CgroupDriver() == "systemd",
		RestrictOOM:   !host.CanLowerOOMScore(),
		Registry:      r.Registry,
	}
}
