package kubelet

import (
	"context"
	"fmt"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const container = "kubelet"

// Instance is the container of the kubelet on this host. Only Kubelet creates it.
type Instance struct{ docker.ManagedContainer }

// InstanceIn returns the container of the kubelet in the main Docker.
func InstanceIn(engine func() *docker.Engine) Instance {
	return Instance{docker.ManagedContainer{Docker: engine, Name: container}}
}

// Explain returns the last complaints of the kubelet, for an error about it: at most 15
// of the last 400 lines of its log.
func (c Instance) Explain() string {
	return complaints(c.Tail(context.Background(), 400), 15)
}

// Kubectl returns the path at which a process of this host can execute the
// kubectl of the container; running is false if there is no container. The
// program is static, so it works on the files and the terminal of the host.
func (c Instance) Kubectl(ctx context.Context) (path string, running bool, err error) {
	pid, running, err := c.Docker().Process(ctx, container)
	return fmt.Sprintf("/proc/%d/root%s", pid, kubectlPath), running, err
}

// RestartAfter returns the step that restarts a kubelet which started before the
// time that end returns. The zero time requires nothing. Pods keep running.
func (c Instance) RestartAfter(end func() time.Time) step.Step {
	const name = "restart the kubelet after an outage of the control plane"
	const todo = "restart the kubelet, which may wait up to a minute until it watches its pods again"
	return step.When("restart-kubelet", name, todo, func(ctx context.Context) (bool, error) {
		at := end()
		if at.IsZero() {
			return false, nil
		}
		started, runs, err := c.StartedAt(ctx)
		return runs && started.Before(at), err
	}, c.Restart)
}
