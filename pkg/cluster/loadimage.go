package cluster

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
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

// LoadImage copies images into all running nodes, either from the engine that
// runs the nodes or from the Docker of one node. The source is read once.
func LoadImage(ctx context.Context, options Options, from string, images []string, emit func(Event)) error {
	return onNodes(ctx, options, emit, func(f *fleet, found []docker.FoundMachine) error {
		source, err := f.imageSource(from, found)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(found, func(m docker.FoundMachine) bool { return m.State == "running" }) {
			return &step.Problem{Name: "cluster-off", Text: "no node of cluster " + f.Name + " runs", Remedy: "run `kube-bootstrap cluster up --name " + f.Name + "`"}
		}
		if err := source.lacks(ctx, images); err != nil {
			return err
		}
		load := func(ctx context.Context) error { return f.spread(ctx, source, images, found) }
		return f.run(ctx, step.Plan{{todo("load "+strings.Join(images, ", ")+" from "+source.name+" into the nodes", load)}})
	})
}

// imageSource is a Docker engine from which images are copied.
type imageSource struct {
	name string
	has  func(ctx context.Context, image string) (bool, error)
	save func(ctx context.Context, to io.Writer, images ...string) error
}

// imageSource returns the engine if name is empty, otherwise the Docker of the
// node of that name.
func (f *fleet) imageSource(name string, found []docker.FoundMachine) (imageSource, error) {
	if name == "" {
		return imageSource{"the engine", f.docker.HasImage, f.docker.Save}, nil
	}
	m, err := f.pickRunning(name, found)
	node := f.node(m)
	return imageSource{
		name: "node " + m.name,
		has: func(ctx context.Context, image string) (bool, error) {
			err := node.Exec(ctx, driver.Exec{Args: []string{"docker", "image", "inspect", "--format", "{{.Id}}", image}})
			var exit *driver.ExitError
			if errors.As(err, &exit) {
				return false, nil
			}
			return err == nil, err
		},
		save: func(ctx context.Context, to io.Writer, images ...string) error {
			return node.Exec(ctx, driver.Exec{Args: append([]string{"docker", "save"}, images...), Stdout: to})
		},
	}, err
}

// lacks returns the images that the source does not have.
func (s imageSource) lacks(ctx context.Context, images []string) error {
	var errs []error
	for _, image := range images {
		has, err := s.has(ctx, image)
		if err == nil && !has {
			err = &step.Problem{Name: "image-missing", Text: s.name + " has no image " + image, Remedy: "pull or build it first (`docker pull " + image + "`)"}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// spread writes one stream to every node. A node that fails stops hearing it,
// and the others go on.
func (f *fleet) spread(ctx context.Context, source imageSource, images []string, found []docker.FoundMachine) error {
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
	err := source.save(ctx, io.MultiWriter(writers...), images...)
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
