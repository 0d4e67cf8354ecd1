package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// podsFile exists if the pods of this host belong to kube-bootstrap.
	podsFile = host.StateDir + "/containerd-pods"
	// criRoot is created by CRI when it is enabled.
	criRoot = defaultRoot + "/io.containerd.grpc.v1.cri"
	// networksDir contains a directory per CNI network.
	networksDir = "/var/lib/cni/networks"
)

// podPaths are what containerd and the CNI plugins create for pods and leave behind, as they are with the default
// directories of containerd.
var podPaths = []string{
	"/var/lib/cni", networksDir, "/var/lib/cni/results", networksDir + "/" + networkName,
	"/var/log/pods", "/var/log/containers", "/run/netns",
	"/run/containerd/io.containerd.grpc.v1.cri/sandboxes", "/run/containerd/io.containerd.grpc.v1.cri/containers",
	criRoot, criRoot + "/sandboxes", criRoot + "/containers",
	"/run/containerd/io.containerd.runtime.v2.task/" + namespace,
	"/var/lib/containerd/io.containerd.runtime.v2.task/" + namespace,
	"/run/containerd/s", "/run/containerd/fifo", "/run/containerd/runc", "/run/containerd/runc/" + namespace,
	"/run/containerd/io.containerd.sandbox.controller.v1.shim/" + namespace,
	"/var/lib/containerd/io.containerd.sandbox.controller.v1.shim/" + namespace,
}

// criPaths are what containerd creates when CRI is enabled, and leaves behind. Without cniConfDir, a containerd with
// CRI exits.
// https://github.com/containerd/containerd/blob/v2.4.2/internal/cri/server/cni_conf_syncer.go#L100-L102
// https://github.com/containerd/containerd/blob/v2.4.2/internal/cri/server/service.go#L363-L370
var criPaths = []string{criRoot, "/etc/cni", cniConfDir, "/run/nri", "/run/nri/nri.sock"}

// shared are the paths that other programs use too: they are removed only if empty.
var shared = map[string]bool{
	"/var/lib/cni": true, networksDir: true, "/var/lib/cni/results": true, "/run/netns": true,
	criRoot: true, "/run/containerd/s": true, "/run/containerd/fifo": true, "/run/containerd/runc": true,
	"/etc/cni": true, cniConfDir: true, "/run/nri": true,
}

// Pods are the pods of this host, in containerd's namespace k8s.io.
type Pods struct {
	Files  host.Files
	Socket Socket
	// Images are the references that the load steps load for pods.
	Images []string
}

// PodsID identifies Pods.Claim.
const PodsID step.ID = "pods"

// Claim is the step that claims the pods of this host. Apply only records this; Undo kills all pods and removes what
// they leave behind.
func (p Pods) Claim() step.Step {
	return step.Step{
		ID: PodsID, Name: "run pods in containerd",
		Check: func(context.Context) (step.Diff, error) {
			if p.Files.Exists(podsFile) {
				return nil, nil
			}
			return step.Diff{"let the kubelet run pods in containerd's namespace " + namespace}, nil
		},
		Apply: func(ctx context.Context) error {
			if err := p.note(ctx); err != nil {
				return err
			}
			return p.Files.Write(podsFile, nil, 0o600)
		},
		Undo: p.remove,
	}
}

func (p Pods) remove(ctx context.Context) error {
	own, err := p.own(ctx)
	if err != nil || !own {
		return err
	}
	if err := p.note(ctx); err != nil {
		return err
	}
	b, err := p.before(ctx)
	if err != nil {
		return err
	}
	if err := p.Socket.killPods(ctx); err != nil {
		return fmt.Errorf("remove pods from containerd: %w", err)
	}
	if err := endShims(ctx, p.Socket); err != nil {
		return fmt.Errorf("end the shims of pods: %w", err)
	}
	err = errors.Join(
		removeNetns(p.Files), host.RemoveDeadSockets(p.Files, host.ShimSockets),
		removeState(p.Files, FindDirs(p.Files), b), removeHostPorts(ctx, b),
		// A container that was about to start when its shim ended may still run, in a cgroup of the driver cgroupfs or
		// in a slice of systemd.
		process.EndCgroup(ctx, "kubepods"), initsystem.EndSlice(ctx, "kubepods"),
	)
	if err != nil {
		return err
	}
	return p.Files.Remove(podsFile)
}

// shimLimit is the time for a shim to exit after SIGTERM.
const shimLimit = 3 * time.Second

// endShims ends the shims that are left. A shim exits with its last container, unless another one was about to start.
func endShims(ctx context.Context, s Socket) error {
	return process.End(ctx, shimLimit, func(args []string) bool {
		return strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") && follows(args, "-namespace", namespace) &&
			follows(args, "-address", string(s))
	})
}

// follows reports whether a flag has this value in args.
func follows(args []string, flag, value string) bool {
	at := slices.Index(args, flag)
	return at >= 0 && at+1 < len(args) && args[at+1] == value
}

// removeNetns removes the network namespaces that CRI created, and their veth pairs.
func removeNetns(files host.Files) error {
	return host.Each(files.Match("/run/netns/cni-*"), func(path string) error {
		return errors.Join(links.DeleteInto(files.Path(path)), filesystem.UnmountBelow(path), files.Remove(path))
	})
}

// removeState removes what pods left on disk.
func removeState(files host.Files, dirs Dirs, b before) error {
	notes := append(files.Match("/var/lib/cni/results/"+networkName+"-*"),
		files.Match("/var/lib/cni/results/cni-loopback-*")...)
	return errors.Join(files.Drop(notes...), removePaths(files, podPaths, dirs, b))
}

func removePaths(files host.Files, paths []string, dirs Dirs, b before) error {
	var errs []error
	for _, path := range slices.Backward(paths) {
		errs = append(errs, removePath(files, dirs.at(path), shared[path], slices.Contains(b.Paths, path)))
	}
	return errors.Join(errs...)
}

func removePath(files host.Files, path string, shared, existed bool) error {
	if shared {
		if existed || files.ExistsMatch(path+"/*") || !files.Exists(path) {
			return nil
		}
		// ip(8) makes /run/netns a mount of itself.
		return errors.Join(filesystem.UnmountBelow(files.Path(path)), removeEmptyDir(files.Path(path)))
	}
	if err := filesystem.UnmountBelow(files.Path(path)); err != nil {
		return err
	}
	if !existed {
		return files.RemoveAll(path)
	}
	return files.RemoveOthers(path, nil)
}

// removeEmptyDir leaves a directory that another program uses or has removed meanwhile: turndown starts the containers
// of Docker at the same time.
func removeEmptyDir(path string) error {
	err := os.Remove(path)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

const hostPortChain = "CNI-HOSTPORT-DNAT"

// removeHostPorts removes portmap's chains, unless they existed before.
func removeHostPorts(ctx context.Context, b before) error {
	if b.HostPorts {
		return nil
	}
	return netfilter.DeleteChains(ctx, func(chain string) bool {
		return strings.HasPrefix(chain, "CNI-HOSTPORT-") || strings.HasPrefix(chain, "CNI-DN-")
	})
}

// Problems returns a problem if another cluster's pods run here [containerd-pods].
func (p Pods) Problems(ctx context.Context) error {
	if p.Files.Exists(podsFile) {
		return nil
	}
	n, err := p.Socket.countContainers(ctx)
	if err != nil || n == 0 {
		return err
	}
	return &step.Problem{Name: "containerd-pods",
		Text:   fmt.Sprintf("containerd already has %d containers of pods (namespace %s)", n, namespace),
		Remedy: "remove the other cluster from this host first"}
}
