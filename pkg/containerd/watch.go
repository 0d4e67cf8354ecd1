package containerd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Watch returns an error, with the last line of the log, once the container
// of the pod crashes repeatedly. It returns nil when ctx ends. The kubelet
// restarts the container after a growing backoff.
func (p StaticPod) Watch(ctx context.Context) error {
	return step.WatchEnds(ctx, func(ctx context.Context, since time.Time) (step.End, bool) {
		last := p.lastEnd(ctx, since)
		if last == nil {
			return step.End{}, false
		}
		return step.End{
			What: p.Name, ID: last.Id, Code: int(last.ExitCode), Ran: time.Duration(last.FinishedAt - last.StartedAt), Restarted: true,
			LastLine: func(context.Context) string { return lastLine(p.Files, last.LogPath) },
		}, true
	})
}

// Started returns nil if the kubelet has started a container of the pod, even
// if the container has ended since.
func (p StaticPod) Started(ctx context.Context) error {
	return p.Socket.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		all, err := p.containers(ctx, cri)
		started := func(c *runtime.Container) bool { return c.State != runtime.ContainerState_CONTAINER_CREATED }
		if err == nil && !slices.ContainsFunc(all, started) {
			return errors.New("the kubelet has not started the container of " + p.Name + " yet")
		}
		return err
	})
}

// lastEnd returns nil if the pod's container runs, or if it ended before
// since: the kubelet has then restarted it, or is about to. The attempt of a
// container counts from the start of its pod.
func (p StaticPod) lastEnd(ctx context.Context, since time.Time) (last *runtime.ContainerStatus) {
	_ = p.Socket.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error { // the caller reports a CRI that does not answer
		all, err := p.containers(ctx, cri)
		container := newest(all)
		if container.GetState() != runtime.ContainerState_CONTAINER_EXITED {
			return err
		}
		found, err := cri.ContainerStatus(ctx, &runtime.ContainerStatusRequest{ContainerId: container.Id})
		if err == nil && time.Unix(0, found.Status.FinishedAt).After(since) {
			last = found.Status
		}
		return err
	})
	return last
}

// lastLine returns the last line of a CRI log, without the time, stream and
// tag at its beginning.
func lastLine(files host.Files, path string) string {
	data, err := files.Read(path)
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
