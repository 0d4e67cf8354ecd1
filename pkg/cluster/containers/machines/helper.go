package machines

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// helper is the value of docker.OurLabel for short-lived helper containers.
const helper = "helper"

// helpers are the short-lived containers of a cluster that inspect the engine's machine, or read
// and write volumes.
type helpers struct {
	engine  *docker.Engine
	cluster string
}

func (h helpers) with(ctx context.Context, options client.ContainerCreateOptions, use func(id string) error) error {
	options.Config.Labels = map[string]string{docker.OurLabel: helper, docker.ClusterLabel: h.cluster}
	id, err := h.engine.Create(ctx, options)
	if err != nil {
		return err
	}
	err = use(id)
	return errors.Join(err, h.engine.Discard(ctx, id))
}

// output runs a helper container to its end and returns what it wrote.
func (h helpers) output(ctx context.Context, options client.ContainerCreateOptions) (text string, err error) {
	err = h.with(ctx, options, func(id string) error {
		wait := h.engine.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
		if _, err := h.engine.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
			return err
		}
		var code int64
		select {
		case end := <-wait.Result:
			code = end.StatusCode
		case err := <-wait.Error:
			return err
		}
		text, err = h.engine.Logs(ctx, id, client.ContainerLogsOptions{})
		if err == nil && code != 0 {
			err = fmt.Errorf("%w: %s", docker.ExitCode(code), strings.TrimSpace(text))
		}
		return err
	})
	return text, err
}

// RemoveHelpers removes helper containers that a killed run has left running.
func (c Objects) RemoveHelpers(ctx context.Context) error {
	return removeContainers(ctx, c.Engine, ofCluster(c.Name).Add("label", docker.OurLabel+"="+helper))
}
