package preflight

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// minFree includes the images of one Kubernetes version, and the state.
const minFree = 2 << 30 // bytes

// stores returns the directories of images and state: of this program, of the main Docker and
// of containerd. Each may be a file system. Another check reports a Docker that does not answer.
func stores(ctx context.Context, files host.Files) []string {
	docker := "/var/lib/docker"
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	if facts, err := local.MainDocker().Facts(ctx); err == nil && facts.DockerRootDir != "" {
		docker = facts.DockerRootDir
	}
	return []string{stateDir, docker, containerd.FindDirs(files).Root}
}

// stateDir is the directory of stores that has the state of this program.
const stateDir = "/var/lib"

// pullFactor is how many times the size of the downloads a pull needs until the bundle is
// complete: the downloads, their unpacked files and the bundle.
const pullFactor = 5

func spaceProblem(ctx context.Context, h request) error {
	if h.Saved.Installed() {
		return nil
	}
	return roomProblem(ctx, h)
}

// roomProblem returns a problem if a store has no room for all images.
func roomProblem(ctx context.Context, h request) error {
	return eachStore(ctx, h.Files, func(dir string) error {
		need := int64(minFree)
		if dir == stateDir {
			need += pullFactor * h.Supply.Bytes
		}
		return lessThan(h.Files, need, dir)
	})
}

func eachStore(ctx context.Context, files host.Files, look func(dir string) error) error {
	stores := stores(ctx, files)
	var errs []error
	for i, dir := range stores {
		seen := func(earlier string) bool { return filesystem.Same(files, earlier, dir) }
		if !slices.ContainsFunc(stores[:i], seen) {
			errs = append(errs, look(dir))
		}
	}
	return errors.Join(errs...)
}

func lessThan(files host.Files, need int64, dir string) error {
	free, err := filesystem.FreeBytes(files, dir)
	if err != nil || free >= need {
		return err
	}
	return &step.Problem{Name: "disk-space",
		Text:   fmt.Sprintf("%s has %d MiB free, %d MiB are required", dir, free>>20, need>>20),
		Remedy: "free some space"}
}

// roomBytes and roomFiles are the free space and inodes below which the next
// write of a daemon may fail.
const (
	roomBytes = 16 << 20
	roomFiles = 256
)

// Room is the step that finds a full disk on an installed host. It has no
// Apply: the administrator must free space [disk-space, disk-inodes].
func Room(files host.Files) step.Step {
	room := func(dir string) error { return errors.Join(lessThan(files, roomBytes, dir), fewFiles(files, dir)) }
	return step.Step{
		ID: "disk-room", Name: "find room on the disks", Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) { return nil, eachStore(ctx, files, room) },
	}
}

func fewFiles(files host.Files, dir string) error {
	free, err := filesystem.FreeFiles(files, dir)
	if err != nil || free >= roomFiles {
		return err
	}
	return &step.Problem{Name: "disk-inodes",
		Text:   fmt.Sprintf("%s has %d free inodes, %d are required", dir, free, roomFiles),
		Remedy: "delete files"}
}

// A clock outside of these limits was never set, as on boards without a
// battery, or is wrong. Certificates that it dates are not valid on other
// hosts.
var (
	notBefore = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

func clockProblem(context.Context, request) error { return clockProblemAt(time.Now()) }

func clockProblemAt(now time.Time) error {
	where := ""
	switch {
	case now.Before(notBefore):
		where = "in the past"
	case now.After(notAfter):
		where = "far in the future"
	default:
		return nil
	}
	return &step.Problem{Name: "clock",
		Text:   "the clock is at " + now.UTC().Format(time.RFC3339) + ", which is " + where,
		Remedy: "set it (`timedatectl set-time`, or start a time service)"}
}

// archProblem returns a problem if the wanted architecture is not the one of
// this program: its images would need an emulator.
func archProblem(_ context.Context, h request) error {
	if h.Config.Arch == runtime.GOARCH {
		return nil
	}
	return &step.Problem{Name: "arch",
		Text:   fmt.Sprintf("arch: %s, but this program is for %s", h.Config.Arch, runtime.GOARCH),
		Remedy: "remove ARCH and --arch"}
}

// minInotify is the number of inotify instances that containerd, two Docker
// daemons, the kubelet and the control plane need. Without them they exit or
// hang.
const minInotify = 24

func inotifyProblem(_ context.Context, h request) error {
	if h.Saved.Installed() {
		return nil
	}
	free, err := kernel.InotifyFree(minInotify)
	if err != nil || free >= minInotify {
		return err
	}
	return &step.Problem{Name: "inotify",
		Text:   fmt.Sprintf("this user can create only %d more inotify instances, %d are required", free, minInotify),
		Remedy: "raise the limit (`sysctl fs.inotify.max_user_instances=1024`, and in /etc/sysctl.d)"}
}

// swapProblem returns a problem if swap is on with cgroup v1. Kubelets of
// 1.34 and later disable swap for pods by cgroup v2; with v1 pods could
// exceed their memory limits.
func swapProblem(context.Context, request) error {
	if !kernel.SwapOn() || kernel.CgroupV2() {
		return nil
	}
	return &step.Problem{Name: "swap", Text: "swap is on, and the kubelet cannot disable it for pods with cgroup v1",
		Remedy: "disable it (`swapoff -a`, and remove its line in /etc/fstab)"}
}

func kernelProblem(ctx context.Context, h request) error {
	var errs []error
	for _, controller := range []string{"cpu", "memory", "pids"} {
		if !kernel.HasCgroup(controller) {
			errs = append(errs, &step.Problem{Name: "cgroup-" + controller,
				Text:   "the kernel's cgroup controller " + controller + " is disabled",
				Remedy: "enable it at boot (cgroup_enable=" + controller + ")"})
		}
	}
	return errors.Join(append(errs, h.parts.Network.Flannel.ModuleProblems(ctx), programProblems(h))...)
}

// programProblems asks for both programs, because Docker, flanneld and kube-proxy may each use
// another firewall, and turndown removes the rules of all.
func programProblems(h request) error {
	if h.Saved.Installed() {
		return nil
	}
	return netfilter.MissingProblems()
}

func podProblems(ctx context.Context, h request) error {
	if h.Saved.Installed() {
		return nil
	}
	return errors.Join(
		containerd.MissingProblem(), oldContainerd(ctx, h), h.parts.Node.CRI.ConfigProblems(ctx),
		containerd.CNIProblems(h.Files, h.ManagesNetwork()), h.parts.Node.Pods.Problems(ctx))
}

// oldContainerd returns a problem if containerd is older than the oldest
// version that the wanted Kubernetes supports. It skips a CRI socket that the
// user configured, which may belong to another runtime.
func oldContainerd(ctx context.Context, h request) error {
	_, m, err := catalog.Kubernetes(h.Config.KubernetesVersion)
	if err != nil || h.Config.CRISocket != "" {
		return err
	}
	return containerd.OldProblem(ctx, m.Containerd)
}
