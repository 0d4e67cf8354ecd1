package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// manyEnds is the number of exits during a watch after which Watch gives up,
	// if the last run was short. A program that only waits for another one needs
	// fewer: the kubelet waits longer before each restart. Exits before the watch
	// do not count: the attempt of a container covers the whole life of its pod.
	manyEnds   = 3
	watchPause = time.Second
)

// Watch returns an error, with the last line of the log, once the container of
// a static pod crashes repeatedly; nil when ctx ends. It reports the first
// crash as progress.
func (r Runtime) Watch(pod string) func(context.Context) error {
	return func(ctx context.Context) error {
		since, told, times := time.Now(), "", 0
		tick := time.NewTicker(watchPause)
		defer tick.Stop()
		for {
			last := r.lastEnd(ctx, pod, since)
			if last != nil && told != last.status.Id {
				times++
				told, last.times = last.status.Id, times
				text := pod + " " + r.describe(last)
				if last.final(step.CheckLimit(ctx)) {
					return errors.New(text)
				}
				step.Report(ctx, text, 0, 0)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}
}

// end describes how the last container of a pod ended, and how many ended during
// the watch.
type end struct {
	status *runtime.ContainerStatus
	times  int
}

func (e end) ran() time.Duration { return time.Duration(e.status.FinishedAt - e.status.StartedAt) }

func (e end) final(soon time.Duration) bool { return e.times >= manyEnds && e.ran() < soon }

// lastEnd returns nil if the pod's container runs, or if it ended before since:
// then the kubelet has restarted it, or is about to.
func (r Runtime) lastEnd(ctx context.Context, pod string, since time.Time) (last *end) {
	_ = r.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error { // the wait itself reports a CRI that does not answer
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
			last = &end{status: found.Status}
		}
		return err
	})
	return last
}

func (r Runtime) describe(e *end) string {
	often := "ended"
	if e.times > 1 {
		often = fmt.Sprintf("ended %d times, the last time", e.times)
	}
	return fmt.Sprintf("%s with exit code %d after %s: %s", often, e.status.ExitCode, e.ran().Round(watchPause/10), r.lastWords(e.status.LogPath))
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
