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
func exchange(ctx context.Context, files host.Files, pods []host.File) error {
	replaced, err := takeAway(files, pods)
	if err == nil {
		err = awaitEnd(ctx, files, replaced)
	}
	return errors.Join(err, files.Put(pods))
}

// awaitEnd waits until the kubelet has stopped the static pods, but not for the
// whole limit, because a kubelet that does not run never stops them. A timeout
// is not an error: the new pod then only starts later.
func awaitEnd(ctx context.Context, files host.Files, names []string) error {
	err := step.Until(step.WithLimit(ctx, 3*step.CheckLimit(ctx)), func(context.Context) error {
		if at := slices.IndexFunc(names, func(name string) bool { return lives(files, name) }); at >= 0 {
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
func takeAway(files host.Files, pods []host.File) (names []string, err error) {
	for _, file := range pods {
		old, err := files.Read(file.Path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(old, file.Data) {
			continue
		}
		if err := errors.Join(err, files.Remove(file.Path)); err != nil {
			return names, err
		}
		names = append(names, strings.TrimSuffix(filepath.Base(file.Path), ".yaml"))
	}
	return names, nil
}

// lives reports whether the kubelet still has a static pod of that name. The
// kubelet removes the control group of a pod last. Its name, as that of the log
// directory, contains an identity that only the kubelet knows.
func lives(files host.Files, name string) bool {
	logs := files.Match(podLogDir + "/kube-system_" + name + "-*")
	return slices.ContainsFunc(logs, func(dir string) bool {
		uid := dir[strings.LastIndex(dir, "_")+1:]
		return files.ExistsMatch("/sys/fs/cgroup/kubepods*/*burstable*/*pod"+uid+"*") ||
			files.ExistsMatch("/sys/fs/cgroup/*/kubepods*/*burstable*/*pod"+uid+"*")
	})
}
