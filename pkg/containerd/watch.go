package containerd

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Watch returns an error, with the last line of the log, once the container
// of a static pod crashes repeatedly. It returns nil when ctx ends. The
// kubelet restarts the container after a growing backoff.
func (r Runtime) Watch(pod string) func(context.Context) error {
	return func(ctx context.Context) error {
		return step.WatchEnds(ctx, func(ctx context.Context, since time.Time) (step.End, bool) {
			last := r.lastEnd(ctx, pod, since)
			if last == nil {
				return step.End{}, false
			}
			return step.End{
				What: pod, ID: last.Id, Code: int(last.ExitCode), Ran: time.Duration(last.FinishedAt - last.StartedAt), Restarted: true,
				LastLine: func(context.Context) string { return r.lastWords(last.LogPath) },
			}, true
		})
	}
}

// Started returns nil if the kubelet has started a container of a static pod, even
// if the container has ended since.
func (r Runtime) Started(ctx context.Context, pod string) error {
	return r.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		answer, err := cri.ListContainers(ctx, &runtime.ListContainersRequest{Filter: &runtime.ContainerFilter{LabelSelector: labelsOf(pod)}})
		started := func(c *runtime.Container) bool { return c.State != runtime.ContainerState_CONTAINER_CREATED }
		if err == nil && !slices.ContainsFunc(answer.Containers, started) {
			return errors.New("the kubelet has not started the container of " + pod + " yet")
		}
		return err
	})
}

// lastEnd returns nil if the pod's container runs, or if it ended before
// since: the kubelet has then restarted it, or is about to. The attempt of a
// container counts from the start of its pod.
func (r Runtime) lastEnd(ctx context.Context, pod string, since time.Time) (last *runtime.ContainerStatus) {
	_ = r.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error { // the caller reports a CRI that does not answer
		answer, err := cri.ListContainers(ctx, &runtime.ListContainersRequest{Filter: &runtime.ContainerFilter{LabelSelector: labelsOf(pod)}})
		if err != nil || len(answer.Containers) == 0 {
			return err
		}
		newest := slices.MaxFunc(answer.Containers, func(a, b *runtime.Container) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
		if newest.State != runtime.ContainerState_CONTAINER_EXITED {
			return nil
		}
		found, err := cri.ContainerStatus(ctx, &runtime.ContainerStatusRequest{ContainerId: newest.Id})
		if err == nil && time.Unix(0, found.Status.FinishedAt).After(since) {
			last = found.Status
		}
		return err
	})
	return last
}

// lastWords returns the last line of a CRI log, without the time, stream and
// tag at its beginning.
func (r Runtime) lastWords(path string) string {
	data, err := r.Files.Read(path)
	if err != nil {
		return "it has no log"
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	last := lines[len(lines)-1]
	if words := strings.SplitN(last, " ", 4); len(words) == 4 {
		return words[3]
	}
	return last
}
