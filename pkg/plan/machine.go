package plan

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// minFree is what the images of one Kubernetes version and its state need.
const minFree = 2 << 30 // bytes

// stores are where images and state go: each may be a file system of its own.
var stores = []string{"/var/lib", "/var/lib/docker", "/var/lib/containerd"}

func (h *Host) spaceProblem(context.Context) error {
	if h.installed() {
		return nil
	}
	return h.eachStore(func(dir string) error { return h.lessThan(minFree, dir) })
}

// eachStore calls look once for each file system of the stores.
func (h *Host) eachStore(look func(dir string) error) error {
	var errs []error
	for i, dir := range stores {
		seen := func(earlier string) bool { return h.Files.SameFileSystem(earlier, dir) }
		if !slices.ContainsFunc(stores[:i], seen) {
			errs = append(errs, look(dir))
		}
	}
	return errors.Join(errs...)
}

func (h *Host) lessThan(need int64, dir string) error {
	free, err := h.Files.FreeBytes(dir)
	if err != nil || free >= need {
		return err
	}
	return &step.Problem{Name: "disk-space", Text: fmt.Sprintf("%s has %d MiB free, %d MiB are needed", dir, free>>20, need>>20),
		Remedy: "free some space"}
}

// With less than this, the next write of a daemon may fail.
const (
	roomBytes = 16 << 20
	roomFiles = 256
)

// room is the step that finds a full disk of a host that is set up. Nothing can
// be applied: the administrator must free space [disk-space, disk-inodes].
func (h *Host) room() step.Step {
	return step.Step{Name: "find room on the disks", Waits: true, Check: func(context.Context) (step.Diff, error) {
		return nil, h.eachStore(func(dir string) error { return errors.Join(h.lessThan(roomBytes, dir), h.fewFiles(dir)) })
	}}
}

func (h *Host) fewFiles(dir string) error {
	free, err := h.Files.FreeFiles(dir)
	if err != nil || free >= roomFiles {
		return err
	}
	return &step.Problem{Name: "disk-inodes", Text: fmt.Sprintf("%s has room for %d more files, %d are needed", dir, free, roomFiles),
		Remedy: "remove files that are not needed"}
}

// A clock outside these was never set, as on boards without a battery, or set
// to nonsense: certificates made by it are of no use to other hosts.
var (
	notBefore = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

func clockProblem(now time.Time) error {
	where := ""
	switch {
	case now.Before(notBefore):
		where = "in the past"
	case now.After(notAfter):
		where = "far in the future"
	default:
		return nil
	}
	return &step.Problem{Name: "clock", Text: "the clock says " + now.UTC().Format(time.RFC3339) + ", which is " + where,
		Remedy: "set it (`timedatectl set-time`, or start a time service)"}
}

// archProblem: a program of one architecture runs on another only under an
// emulator, which images would need too.
func (h *Host) archProblem(context.Context) error {
	if h.Config.Arch == runtime.GOARCH {
		return nil
	}
	return &step.Problem{Name: "arch", Text: fmt.Sprintf("arch: %s, but this program, and so this host, is %s", h.Config.Arch, runtime.GOARCH),
		Remedy: "leave ARCH and --arch out"}
}

// minInotify is what containerd, two Docker daemons, the kubelet and the
// control plane open between them; they end or stand still without.
const minInotify = 24

func (h *Host) inotifyProblem(context.Context) error {
	if h.installed() {
		return nil
	}
	free, err := host.InotifyFree(minInotify)
	if err != nil || free >= minInotify {
		return err
	}
	return &step.Problem{Name: "inotify", Text: fmt.Sprintf("the kernel gives only %d more inotify instances, %d are needed", free, minInotify),
		Remedy: "raise the limit (`sysctl fs.inotify.max_user_instances=1024`, and in /etc/sysctl.d)"}
}
