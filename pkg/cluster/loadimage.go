package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// loadScript puts one archive into both stores of a node: pods run from
// containerd's, plain containers from Docker's.
const loadScript = `set -e
f=$(mktemp /var/lib/image-XXXXXX)
trap 'rm -f "$f"' EXIT
cat >"$f"
docker load -q -i "$f" >/dev/null
ctr -n k8s.io images import "$f" >/dev/null`

// LoadImage copies images of the engine that runs the nodes into all nodes
// that run. The engine sends them once.
func LoadImage(ctx context.Context, options Options, images []string, emit func(Event)) error {
	return onNodes(ctx, options, emit, func(f *fleet, found []docker.FoundMachine) error {
		var errs []error
		for _, image := range images {
			has, err := f.docker.HasImage(ctx, image)
			if err == nil && !has {
				err = &step.Problem{Name: "image-missing", Text: "the engine has no image " + image, Remedy: "pull or build it first (`docker pull " + image + "`)"}
			}
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return f.run(ctx, step.Plan{{f.loadStep(images, found)}})
	})
}

func (f *fleet) loadStep(images []string, found []docker.FoundMachine) step.Step {
	name := fmt.Sprintf("load %d images into the nodes", len(images))
	return step.Step{
		Name: name, Waits: true,
		Check: func(context.Context) (step.Diff, error) { return step.Diff{name}, nil },
		Apply: func(ctx context.Context) error {
			return f.spread(ctx, images, found)
		},
	}
}

// spread writes one stream to every node. A node that fails stops hearing it,
// and the others go on.
func (f *fleet) spread(ctx context.Context, images []string, found []docker.FoundMachine) error {
	var wg sync.WaitGroup
	var writers []io.Writer
	var pipes []*io.PipeWriter
	errs := make([]error, len(found))
	for i, m := range found {
		if m.State != "running" {
			continue
		}
		reader, writer := io.Pipe()
		writers, pipes = append(writers, &deaf{to: writer}), append(pipes, writer)
		wg.Go(func() {
			errs[i] = driver.OpenDocker(f.docker, m.Name).Exec(ctx, driver.Exec{Args: []string{"/bin/sh", "-c", loadScript}, Stdin: reader})
			reader.CloseWithError(io.ErrClosedPipe)
		})
	}
	err := f.docker.Save(ctx, io.MultiWriter(writers...), images...)
	for _, p := range pipes {
		p.CloseWithError(err)
	}
	wg.Wait()
	return errors.Join(append(errs, err)...)
}

// deaf goes on without a reader that is gone.
type deaf struct {
	to   io.Writer
	gone bool
}

func (d *deaf) Write(p []byte) (int, error) {
	if !d.gone {
		_, err := d.to.Write(p)
		d.gone = err != nil
	}
	return len(p), nil
}
