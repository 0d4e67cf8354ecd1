package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"google.golang.org/grpc"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// StaticPod is a static pod of this host.
type StaticPod struct {
	Name string // with the node's name at its end, as in the API
	// Ready returns nil if the component serves. It may be nil.
	Ready func(context.Context) error
	// Needs returns the start time of the component that this one needs; ok is
	// false if that does not run. It may be nil.
	Needs func(context.Context) (since time.Time, ok bool, err error)
}

// Revive is the step that removes a static pod whose process has exited, is
// older than the component it needs, or has a directory mounted that was
// removed from the host. The kubelet then creates a new pod at once; it would
// restart an exited container only after a backoff of up to five minutes.
func (r Runtime) Revive(pod StaticPod) step.Step {
	return step.Step{
		Name: "revive " + pod.Name,
		Check: func(ctx context.Context) (step.Diff, error) {
			reason, err := r.stuck(ctx, pod)
			if reason == "" || err != nil {
				return nil, err
			}
			return step.Diff{"remove the pod " + pod.Name + ", so that the kubelet creates it again: " + reason}, nil
		},
		Apply: func(ctx context.Context) error { return r.revive(ctx, pod) },
		// The new container may exit again before all dependencies are back. The
		// next step waits until it serves.
		Waits: true,
	}
}

// revive checks again, because Apply also runs after a Check without an
// answer.
func (r Runtime) revive(ctx context.Context, pod StaticPod) error {
	soon, cancel := step.Checking(ctx)
	defer cancel()
	reason, err := r.stuck(soon, pod)
	if err != nil || reason == "" {
		return err
	}
	return r.removePod(ctx, pod.Name)
}

func (r Runtime) stuck(ctx context.Context, pod StaticPod) (reason string, err error) {
	soon, cancel := step.Half(ctx)
	defer cancel()
	ready := pod.Ready == nil || pod.Ready(soon) == nil
	if err := r.criServes(ctx); err != nil {
		if step.IsUnanswered(err) && !ready {
			return "", err
		}
		return "", nil // no pod runs without CRI
	}
	if reason, err = r.replacedDirs(ctx, pod.Name); reason != "" || err != nil || ready {
		return reason, err
	}
	since, ok, err := pod.Needs(ctx)
	if err != nil || !ok {
		return "", err
	}
	err = r.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		answer, err := cri.ListContainers(ctx, &runtime.ListContainersRequest{Filter: &runtime.ContainerFilter{LabelSelector: labelsOf(pod.Name)}})
		if err != nil {
			return err
		}
		reason = whyStuck(answer.Containers, since)
		return nil
	})
	return reason, err
}

// replacedDirs returns a reason if a container of the pod has a directory
// mounted that was removed or replaced on the host.
func (r Runtime) replacedDirs(ctx context.Context, pod string) (reason string, err error) {
	err = r.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.Containers(ctx, fmt.Sprintf(`labels."io.kubernetes.pod.name"==%q,labels."io.cri-containerd.kind"==container`, pod))
		if err != nil {
			return err
		}
		for _, one := range all {
			if reason, err = r.replacedDirsOf(ctx, one); reason != "" || err != nil {
				return err
			}
		}
		return nil
	})
	return reason, err
}

func (r Runtime) replacedDirsOf(ctx context.Context, one client.Container) (reason string, err error) {
	task, err := one.Task(ctx, nil)
	if err != nil {
		return "", gone(err) // the container has exited
	}
	spec, err := one.Spec(ctx)
	if err != nil {
		return "", gone(err)
	}
	for _, m := range spec.Mounts {
		if m.Type != "bind" || !strings.HasPrefix(m.Source, "/etc/") && !strings.HasPrefix(m.Source, "/var/log/") {
			continue // the kubelet and CRI create the other mounts for this container
		}
		replaced, err := r.Files.DirReplaced(int(task.Pid()), m.Source, m.Destination)
		if err != nil || replaced {
			return m.Source + " was removed or replaced since its program started", err
		}
	}
	return "", nil
}

// whyStuck examines the last container of a pod.
func whyStuck(all []*runtime.Container, since time.Time) string {
	if len(all) == 0 {
		return ""
	}
	last := slices.MaxFunc(all, func(a, b *runtime.Container) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	switch {
	case last.State == runtime.ContainerState_CONTAINER_EXITED:
		return "its program has ended"
	case last.State == runtime.ContainerState_CONTAINER_RUNNING && time.Unix(0, last.CreatedAt).Before(since):
		return "its program is older than what it needs"
	}
	return ""
}

func (r Runtime) removePod(ctx context.Context, name string) error {
	return r.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		answer, err := cri.ListPodSandbox(ctx, &runtime.ListPodSandboxRequest{Filter: &runtime.PodSandboxFilter{LabelSelector: labelsOf(name)}})
		if err != nil {
			return err
		}
		var errs []error
		for _, pod := range answer.Items {
			errs = append(errs, removeSandbox(ctx, cri, pod.Id))
		}
		return errors.Join(errs...)
	})
}

func labelsOf(pod string) map[string]string {
	return map[string]string{"io.kubernetes.pod.name": pod, "io.kubernetes.pod.namespace": "kube-system"}
}

// withCRI calls CRI rather than containerd, because CRI keeps listing pods
// that were removed in another way.
func (r Runtime) withCRI(ctx context.Context, do func(runtime.RuntimeServiceClient) error) error {
	return r.with(ctx, func(_ context.Context, c *client.Client) error {
		conn, ok := c.Conn().(grpc.ClientConnInterface)
		if !ok {
			return errors.New("containerd is not reached by a connection of its own")
		}
		return do(runtime.NewRuntimeServiceClient(conn))
	})
}
