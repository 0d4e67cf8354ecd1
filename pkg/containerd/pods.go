package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// podsFile exists if the pods of this host belong to kube-bootstrap.
	podsFile = host.StateDir + "/containerd-pods"
	// criRoot is created by CRI when it is enabled.
	criRoot = "/var/lib/containerd/io.containerd.grpc.v1.cri"
	// networksDir contains a directory per CNI network.
	networksDir = "/var/lib/cni/networks"
)

// podPaths are what containerd and the CNI plugins create for pods and do not
// remove with the last one. Plain containers use none of them but shared.
var podPaths = []string{
	"/var/lib/cni", networksDir, "/var/lib/cni/results", networksDir + "/" + networkName,
	"/var/log/pods", "/var/log/containers", "/run/netns",
	"/run/containerd/io.containerd.grpc.v1.cri/sandboxes", "/run/containerd/io.containerd.grpc.v1.cri/containers",
	criRoot, criRoot + "/sandboxes", criRoot + "/containers",
	"/run/containerd/io.containerd.runtime.v2.task/" + namespace, "/var/lib/containerd/io.containerd.runtime.v2.task/" + namespace,
	"/run/containerd/s", "/run/containerd/fifo", "/run/containerd/runc", "/run/containerd/runc/" + namespace,
	"/run/containerd/io.containerd.sandbox.controller.v1.shim/" + namespace,
	"/var/lib/containerd/io.containerd.sandbox.controller.v1.shim/" + namespace,
}

// shared are the podPaths that plain containers use too: they are removed
// only if they are empty.
var shared = map[string]bool{
	"/var/lib/cni": true, networksDir: true, "/var/lib/cni/results": true, "/run/netns": true,
	criRoot: true, "/run/containerd/s": true, "/run/containerd/fifo": true, "/run/containerd/runc": true,
}

// Pods is the step that claims the pods of this host. Apply only records
// this; Undo kills all pods and removes what they leave behind.
func (r Runtime) Pods() step.Step {
	return step.Step{
		Name: "run pods in containerd",
		Check: func(context.Context) (step.Diff, error) {
			if r.Files.Exists(podsFile) {
				return nil, nil
			}
			return step.Diff{"let the kubelet run pods in containerd's namespace " + namespace}, nil
		},
		Apply: func(ctx context.Context) error {
			return errors.Join(r.noteBefore(ctx), r.Files.Write(podsFile, nil, 0o600))
		},
		Undo: r.removePods,
	}
}

func (r Runtime) removePods(ctx context.Context) error {
	own, err := r.ownPods(ctx)
	if err != nil || !own {
		return err
	}
	if err := r.noteBefore(ctx); err != nil {
		return err
	}
	b, err := r.before(ctx)
	if err != nil {
		return err
	}
	if err := r.killPods(ctx); err != nil {
		return fmt.Errorf("remove pods from containerd: %w", err)
	}
	if err := r.endShims(ctx); err != nil {
		return fmt.Errorf("end the shims of pods: %w", err)
	}
	if err := errors.Join(r.removeNetns(), r.removeState(b), removeHostPorts(ctx, b), removeCgroups(ctx)); err != nil {
		return err
	}
	return r.Files.Remove(podsFile)
}

// shimPatience is the time for a shim to exit after its last container.
const shimPatience = 3 * time.Second

// endShims ends the shims of pods. A shim exits with its last container,
// unless another container was about to start in it.
func (r Runtime) endShims(ctx context.Context) error {
	return host.EndProcesses(ctx, shimPatience, func(args []string) bool {
		return strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") && follows(args, "-namespace", namespace) && follows(args, "-address", r.Socket)
	})
}

// follows reports whether a flag has this value in args.
func follows(args []string, flag, value string) bool {
	at := slices.Index(args, flag)
	return at >= 0 && at+1 < len(args) && args[at+1] == value
}

// removeNetns removes the network namespaces that CRI created, and with them
// the pods' veth pairs.
func (r Runtime) removeNetns() error {
	var errs []error
	for _, path := range r.Files.Match("/run/netns/cni-*") {
		errs = append(errs, host.UnmountBelow(path), r.Files.Remove(path))
	}
	return errors.Join(errs...)
}

// removeState removes what pods left on disk, in the reverse order of
// podPaths.
func (r Runtime) removeState(b before) error {
	var errs []error
	for _, pattern := range []string{"/var/lib/cni/results/" + networkName + "-*", "/var/lib/cni/results/cni-loopback-*"} {
		for _, path := range r.Files.Match(pattern) {
			errs = append(errs, r.Files.Remove(path))
		}
	}
	for i := len(podPaths) - 1; i >= 0; i-- {
		errs = append(errs, r.removePath(podPaths[i], b))
	}
	return errors.Join(errs...)
}

func (r Runtime) removePath(path string, b before) error {
	existed := slices.Contains(b.Paths, path)
	if shared[path] {
		if existed || r.Files.ExistsMatch(path+"/*") || !r.Files.Exists(path) {
			return nil
		}
		// ip(8) makes /run/netns a mount of itself.
		return errors.Join(host.UnmountBelow(r.Files.Path(path)), os.Remove(r.Files.Path(path)))
	}
	if err := host.UnmountBelow(r.Files.Path(path)); err != nil {
		return err
	}
	if !existed {
		return r.Files.RemoveAll(path)
	}
	return r.emptyDir(path)
}

func (r Runtime) emptyDir(path string) error {
	var errs []error
	for _, inside := range r.Files.Match(path + "/*") {
		errs = append(errs, r.Files.RemoveAll(inside))
	}
	return errors.Join(errs...)
}

const hostPortChain = "CNI-HOSTPORT-DNAT"

// removeHostPorts removes portmap's chains, unless they existed before.
func removeHostPorts(ctx context.Context, b before) error {
	if b.HostPorts {
		return nil
	}
	return host.DeleteChains(ctx, "nat", func(chain string) bool {
		return strings.HasPrefix(chain, "CNI-HOSTPORT-") || strings.HasPrefix(chain, "CNI-DN-")
	})
}

// removeCgroups removes the cgroups of pods: those of the cgroupfs driver,
// and the slices of the systemd driver.
func removeCgroups(ctx context.Context) error {
	// A container that was about to start when its shim ended may still run.
	return errors.Join(host.EndCgroup(ctx, "kubepods"), host.EndSlice(ctx, "kubepods"))
}

// PodProblems returns a problem if another cluster's pods run here
// [containerd-pods].
func (r Runtime) PodProblems(ctx context.Context) error {
	if r.Files.Exists(podsFile) {
		return nil
	}
	n, err := r.countContainers(ctx)
	if err != nil || n == 0 {
		return err
	}
	return &step.Problem{Name: "containerd-pods", Text: fmt.Sprintf("containerd already has %d containers of pods (namespace %s)", n, namespace),
		Remedy: "remove the other cluster from this host first"}
}
