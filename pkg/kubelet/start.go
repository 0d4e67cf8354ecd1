package kubelet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// sharedFile says that it was we who made a mount of Dir on itself.
const sharedFile = host.StateDir + "/kubelet-mount"

// Start runs the kubelet. Undo stops it alone: the pods it started go by the
// container runtime's step, and what it made by that of Configure.
func (k Kubelet) Start() step.Step {
	return step.Step{Name: "start the kubelet", Check: k.checkStarted, Apply: k.start, Undo: k.stop}
}

func (k Kubelet) checkStarted(ctx context.Context) (step.Diff, error) {
	diff, err := k.service().Diff(ctx)
	if err != nil {
		return nil, err
	}
	old, err := k.hasOldToken(ctx)
	if err == nil && old {
		diff = append(diff, "restart the kubelet with the new token")
	}
	shared, sharedErr := host.SharedMount(k.Files.Path(Dir))
	if sharedErr == nil && !shared {
		diff = append(diff, "make "+Dir+" a shared mount")
	}
	return diff, errors.Join(err, sharedErr)
}

// hasOldToken reports whether the kubelet still asks for its certificate with
// a token that was replaced after it had started.
func (k Kubelet) hasOldToken(ctx context.Context) (bool, error) {
	token, err := os.Stat(k.Files.Path(BootstrapConfig))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	cert, err := k.currentCertificate()
	if err == nil && k.now().Before(cert.NotAfter) {
		return false, nil
	}
	started, running, err := k.service().StartedAt(ctx)
	return running && started.Before(token.ModTime()), err
}

func (k Kubelet) start(ctx context.Context) error {
	if err := k.makeDirectories(); err != nil {
		return err
	}
	if err := k.ShareMounts(); err != nil {
		return err
	}
	if old, err := k.hasOldToken(ctx); err != nil || old {
		if err := errors.Join(err, k.service().Remove(ctx)); err != nil {
			return err
		}
	}
	return k.service().Run(ctx)
}

// makeDirectories also creates the directory of static pods: a kubelet that finds
// it at its start watches it, and otherwise looks every 20 seconds.
func (k Kubelet) makeDirectories() error {
	dirs := directories
	if k.ControlPlane {
		dirs = append(slices.Clone(dirs), manifestDir)
	}
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, k.Files.MkdirAll(dir))
	}
	return errors.Join(errs...)
}

func (k Kubelet) service() docker.Service {
	return docker.Service{Docker: k.Docker, Name: container, Container: k.container}
}

// ShareMounts lets mounts that the kubelet makes for pods reach the container
// runtime. On a host where systemd has not done so, it must also be called at
// boot, before Docker starts.
func (k Kubelet) ShareMounts() error {
	dir := k.Files.Path(Dir)
	shared, err := host.SharedMount(dir)
	if err != nil || shared {
		return err
	}
	if err := k.Files.MkdirAll(Dir); err != nil {
		return err
	}
	if err := k.Files.Write(sharedFile, nil, 0o600); err != nil {
		return err
	}
	return host.ShareMount(dir)
}

// stop removes the container, and the directories made for its mounts.
func (k Kubelet) stop(ctx context.Context) error {
	if err := k.service().Remove(ctx); err != nil {
		return err
	}
	return k.removeEmpty()
}

func (k Kubelet) removeEmpty() error {
	var errs []error
	for _, dir := range directories {
		errs = append(errs, k.Files.RemoveEmpty(dir))
	}
	return errors.Join(errs...)
}

// VolumesDir contains the volumes of the addon local-path. The kubelet needs it
// too: it resolves the subPath of a volume mount itself.
const VolumesDir = host.StateDir + "/volumes"

// directories are mounted at the same place, for what the kubelet tells the
// container runtime are paths of the host.
var directories = []string{
	"/etc/kubernetes", Dir, "/var/log/pods", "/var/log/containers",
	"/var/lib/containerd", "/var/lib/cni", "/etc/cni", "/opt/cni", VolumesDir,
}

func (k Kubelet) container() (docker.Container, error) {
	reads, err := k.reads()
	if err != nil {
		return docker.Container{}, err
	}
	return docker.Container{
		Name: container, Image: k.Image, Command: k.command(),
		Env:    []string{"KUBE_BOOTSTRAP_READS=" + reads},
		Mounts: k.mounts(), Privileged: true, HostPID: true, Restart: k.RestartPolicy,
	}, nil
}

func (k Kubelet) command() []string {
	command := []string{
		"kubelet", "--config=" + configFile, "--kubeconfig=" + Kubeconfig,
		"--hostname-override=" + k.HostName, "--node-ip=" + k.NodeIP,
	}
	if !k.ControlPlane {
		command = append(command, "--bootstrap-kubeconfig="+BootstrapConfig)
	}
	if len(k.Own.Labels) > 0 {
		command = append(command, "--node-labels="+strings.Join(k.Own.Labels, ","))
	}
	return k.ExtraArgs.Over(command)
}

func (k Kubelet) mounts() []docker.Mount {
	mounts := []docker.Mount{
		{Source: "/run", Target: "/run"}, {Source: "/sys", Target: "/sys"}, {Source: "/dev", Target: "/dev"},
		{Source: "/etc", Target: hostEtc, ReadOnly: true},
	}
	for _, dir := range directories {
		mounts = append(mounts, docker.Mount{Source: dir, Target: dir, Shared: dir == Dir})
	}
	for _, path := range []string{"/lib/modules", "/etc/machine-id", "/etc/os-release"} {
		if k.Files.Exists(path) {
			mounts = append(mounts, docker.Mount{Source: path, Target: path, ReadOnly: true})
		}
	}
	return mounts
}

// reads changes with what the kubelet reads only when it starts.
func (k Kubelet) reads() (string, error) {
	path, _ := k.resolv()
	config, err := k.config(path)
	sum := sha256.Sum256(slices.Concat(config, []byte(k.Server), k.trusted()))
	return hex.EncodeToString(sum[:8]), err
}

// Joined waits until the API server has given the kubelet its certificate.
func (k Kubelet) Joined() step.Step {
	probe := func(context.Context) error {
		if !k.Files.Exists(Kubeconfig) {
			return errors.New("the kubelet has no certificate yet")
		}
		_, err := k.currentCertificate()
		return err
	}
	return step.Wait("wait for the kubelet's certificate", probe, k.Explain).Watched(k.Watch)
}

// StartedAt returns the time of the kubelet's last start; ok is false unless it
// runs.
func (k Kubelet) StartedAt(ctx context.Context) (at time.Time, ok bool, err error) {
	return k.service().StartedAt(ctx)
}

// Watch returns an error once the kubelet has exited for good or crashes
// repeatedly. A wait for its pods or its node then cannot succeed.
func (k Kubelet) Watch(ctx context.Context) error { return k.service().Watch(ctx) }

// RestartAfter returns the step that restarts a kubelet which started before the
// time that end returns. The zero time requires nothing. Pods keep running.
func (k Kubelet) RestartAfter(end func() time.Time) step.Step {
	return step.Step{
		Name: "restart the kubelet after an outage of the control plane",
		Check: func(ctx context.Context) (step.Diff, error) {
			at := end()
			if at.IsZero() {
				return nil, nil
			}
			started, runs, err := k.StartedAt(ctx)
			if err != nil || !runs || !started.Before(at) {
				return nil, err
			}
			return step.Diff{"restart the kubelet, which may wait up to a minute until it watches its pods again"}, nil
		},
		Apply: k.service().Restart,
	}
}
