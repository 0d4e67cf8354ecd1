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
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// StaticPod is a static pod of this host.
type StaticPod struct {
	Files  host.Files
	Socket Socket
	Name   string // with the node's name at its end, as in the API
	// Ready returns nil if the component serves. It may be nil.
	Ready func(context.Context) error
	// Needs returns the start time of the component that this one needs, if that runs.
	Needs func(context.Context) (since time.Time, ok bool, err error)
}

// Revive is the step that removes a static pod that has exited, is older than the component it needs, or has a removed
// directory mounted. The kubelet then creates a new pod at once; it would restart an exited container only after a
// backoff of up to five minutes.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubelet/kuberuntime/kuberuntime_manager.go#L2077-L2105
func (p StaticPod) Revive() step.Step {
	return step.Step{
		ID: step.IDOf("revive", p.Name), Name: "revive " + p.Name,
		Check: func(ctx context.Context) (step.Diff, error) {
			reason, err := p.stuck(ctx)
			if reason == "" || err != nil {
				return nil, err
			}
			return step.Diff{"remove the pod " + p.Name + ", so that the kubelet creates it again: " + reason}, nil
		},
		Apply: p.revive,
		// The new container may exit again before all dependencies are back; the next step waits.
		Waits: true,
	}
}

// revive checks again, because Apply also runs after a Check without an answer.
func (p StaticPod) revive(ctx context.Context) error {
	soon, cancel := step.Checking(ctx)
	defer cancel()
	reason, err := p.stuck(soon)
	if err != nil || reason == "" {
		return err
	}
	return p.remove(ctx)
}

func (p StaticPod) stuck(ctx context.Context) (reason string, err error) {
	soon, cancel := step.Half(ctx)
	defer cancel()
	ready := p.Ready == nil || p.Ready(soon) == nil
	if err := p.Socket.criServes(ctx); err != nil {
		if step.IsUnanswered(err) && !ready {
			return "", err
		}
		return "", nil // no pod runs without CRI
	}
	if reason, err = p.replacedDirs(ctx); reason != "" || err != nil || ready {
		return reason, err
	}
	since, ok, err := p.Needs(ctx)
	if err != nil || !ok {
		return "", err
	}
	err = p.Socket.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		all, err := p.containers(ctx, cri)
		reason = whyStuck(all, since)
		return err
	})
	return reason, err
}

// replacedDirs returns a reason if a directory that the pod has mounted was removed or replaced.
func (p StaticPod) replacedDirs(ctx context.Context) (reason string, err error) {
	err = p.Socket.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.Containers(ctx,
			fmt.Sprintf(`labels."io.kubernetes.pod.name"==%q,labels."io.cri-containerd.kind"==container`, p.Name))
		if err != nil {
			return err
		}
		for _, one := range all {
			if reason, err = replacedDirsOf(ctx, p.Files, one); reason != "" || err != nil {
				return err
			}
		}
		return nil
	})
	return reason, err
}

func replacedDirsOf(ctx context.Context, files host.Files, one client.Container) (reason string, err error) {
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
		replaced, err := process.DirReplaced(files, int(task.Pid()), m.Source, m.Destination)
		if err != nil || replaced {
			return m.Source + " was removed or replaced since its program started", err
		}
	}
	return "", nil
}

// Running returns the ID of the container of the pod, which must run.
func (p StaticPod) Running(ctx context.Context) (id string, err error) {
	err = p.Socket.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		all, err := p.containers(ctx, cri)
		last := newest(all)
		if err == nil && last.GetState() != runtime.ContainerState_CONTAINER_RUNNING {
			err = errors.New(p.Name + " does not run")
		}
		id = last.GetId()
		return err
	})
	return id, err
}

// whyStuck examines the last container of a pod.
func whyStuck(all []*runtime.Container, since time.Time) string {
	switch last := newest(all); {
	case last.GetState() == runtime.ContainerState_CONTAINER_EXITED:
		return "its program has ended"
	case last.GetState() == runtime.ContainerState_CONTAINER_RUNNING && time.Unix(0, last.CreatedAt).Before(since):
		return "its program is older than what it needs"
	}
	return ""
}

// newest returns the container that was created last, or nil, whose state is CONTAINER_CREATED.
func newest(all []*runtime.Container) *runtime.Container {
	if len(all) == 0 {
		return nil
	}
	return slices.MaxFunc(all, func(a, b *runtime.Container) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
}

func (p StaticPod) containers(ctx context.Context, cri runtime.RuntimeServiceClient) ([]*runtime.Container, error) {
	answer, err := cri.ListContainers(ctx,
		&runtime.ListContainersRequest{Filter: &runtime.ContainerFilter{LabelSelector: p.labels()}})
	return answer.GetContainers(), err
}

func (p StaticPod) remove(ctx context.Context) error {
	return p.Socket.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		answer, err := cri.ListPodSandbox(ctx,
			&runtime.ListPodSandboxRequest{Filter: &runtime.PodSandboxFilter{LabelSelector: p.labels()}})
		return errors.Join(err,
			host.Each(answer.GetItems(),
				func(pod *runtime.PodSandbox) error { return removeSandbox(ctx, cri, pod.Id) }))
	})
}

func removeSandbox(ctx context.Context, cri runtime.RuntimeServiceClient, id string) error {
	_, stopped := cri.StopPodSandbox(ctx, &runtime.StopPodSandboxRequest{PodSandboxId: id})
	removed := step.Until(ctx, func(ctx context.Context) error {
		_, err := cri.RemovePodSandbox(ctx, &runtime.RemovePodSandboxRequest{PodSandboxId: id})
		if err != nil && !beingRemoved(err) {
			err = step.Final(err)
		}
		return err
	}, nil)
	return errors.Join(stopped, removed)
}

// beingRemoved reports whether the kubelet removes the container at the same time. containerd has no type for this
// error: https://github.com/containerd/containerd/blob/v2.4.2/internal/cri/server/container_remove.go#L161
func beingRemoved(err error) bool { return strings.Contains(err.Error(), "already in removing state") }

func (p StaticPod) labels() map[string]string {
	return map[string]string{"io.kubernetes.pod.name": p.Name, "io.kubernetes.pod.namespace": "kube-system"}
}

// Watch returns an error, with the last line of the log, once the container of the pod crashes repeatedly, and nil
// when ctx ends. The kubelet restarts it after a growing backoff.
func (p StaticPod) Watch(ctx context.Context) error {
	return step.WatchEnds(ctx, func(ctx context.Context, since time.Time) (step.End, bool) {
		last := p.lastEnd(ctx, since)
		if last == nil {
			return step.End{}, false
		}
		return p.endOf(last), true
	})
}

func (p StaticPod) endOf(last *runtime.ContainerStatus) step.End {
	end := step.End{
		What: p.Name, ID: last.Id, Code: int(last.ExitCode), Ran: time.Duration(last.FinishedAt - last.StartedAt),
		Restarted: true,
		LastLine:  func(context.Context) string { return lastLine(p.Files, last.LogPath) },
	}
	switch {
	case last.StartedAt == 0:
		end.Failed = cmp.Or(strings.TrimPrefix(last.Reason+": "+last.Message, ": "),
			"the container runtime states no reason")
	case last.Reason == "OOMKilled":
		end.LastLine = func(context.Context) string { return "it needed more memory than it may use (OOMKilled)" }
	}
	return end
}

// Started returns nil if the kubelet has started a container of the pod at any time.
func (p StaticPod) Started(ctx context.Context) error {
	// also while containerd does not run
	missing := errors.New("the kubelet has not started the container of " + p.Name + " yet")
	err := p.Socket.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		all, err := p.containers(ctx, cri)
		if slices.ContainsFunc(all,
			func(c *runtime.Container) bool { return c.State != runtime.ContainerState_CONTAINER_CREATED }) {
			missing = nil
		}
		return err
	})
	return cmp.Or(err, missing)
}

// lastEnd returns nil if the pod's container runs, or ended before since: then the kubelet restarts it. The attempt of
// a container counts from the start of its pod.
func (p StaticPod) lastEnd(ctx context.Context, since time.Time) (last *runtime.ContainerStatus) {
	// the caller reports a CRI that does not answer
	_ = p.Socket.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
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

// lastLine returns the last line of a CRI log, without its time, stream and tag.
func lastLine(files host.Files, path string) string {
	data, err := files.Read(path)
	if err != nil {
		return "it has no log"
	}
	text := strings.TrimSpace(string(data))
	last := text[strings.LastIndex(text, "\n")+1:]
	if words := strings.SplitN(last, " ", 4); len(words) == 4 {
		return words[3]
	}
	return last
}
