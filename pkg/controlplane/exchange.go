package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// exchange writes static pods. Those that stand there in another form are taken
// away first, until the kubelet has ended them: a pod that it sees while the one
// before is ending, it starts only ten to fifteen seconds later, and so long no
// API server would answer. Whatever happens meanwhile, they are written.
func (c ControlPlane) exchange(ctx context.Context, pods []host.File) error {
	replaced, err := c.takeAway(pods)
	if err == nil {
		err = c.awaitEnd(ctx, replaced)
	}
	return errors.Join(err, c.Files.Put(pods))
}

// awaitEnd waits until the kubelet has stopped the static pods, but not for the
// whole limit, because a kubelet that does not run never stops them. A timeout
// is not an error: the new pod then only starts later.
func (c ControlPlane) awaitEnd(ctx context.Context, names []string) error {
	err := step.Until(step.WithLimit(ctx, 3*step.CheckLimit(ctx)), func(context.Context) error {
		if at := slices.IndexFunc(names, c.lives); at >= 0 {
			return fmt.Errorf("the kubelet has not ended %s yet", names[at])
		}
		return nil
	}, nil)
	if ctx.Err() == nil {
		return nil
	}
	return err
}

// takeAway removes the manifests that will be others, and returns their pods.
func (c ControlPlane) takeAway(pods []host.File) (names []string, err error) {
	for _, file := range pods {
		old, err := c.Files.Read(file.Path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(old, file.Data) {
			continue
		}
		if err := errors.Join(err, c.Files.Remove(file.Path)); err != nil {
			return names, err
		}
		names = append(names, strings.TrimSuffix(filepath.Base(file.Path), ".yaml"))
	}
	return names, nil
}

// lives reports whether the kubelet still has a static pod of that name. The
// kubelet removes the control group of a pod last. Its name, as that of the log
// directory, contains an identity that only the kubelet knows.
func (c ControlPlane) lives(name string) bool {
	logs := c.Files.Match(podLogDir + "/kube-system_" + name + "-*")
	return slices.ContainsFunc(logs, func(dir string) bool {
		uid := dir[strings.LastIndex(dir, "_")+1:]
		return c.Files.ExistsMatch("/sys/fs/cgroup/kubepods*/*burstable*/*pod"+uid+"*") ||
			c.Files.ExistsMatch("/sys/fs/cgroup/*/kubepods*/*burstable*/*pod"+uid+"*")
	})
}
