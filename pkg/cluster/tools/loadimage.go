package tools

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// archiveCommand is the host command that reads and writes archives of images on a node. It needs
// neither the docker command nor ctr: distributions have them in packages of their own.
const archiveCommand = "image-archive"

// ImageSource is a Docker engine from which images are copied.
type ImageSource struct {
	Name string
	Has  func(ctx context.Context, image string) (bool, error)
	Save func(ctx context.Context, to io.Writer, images ...string) error
}

// LoadImage copies images into all running nodes. The source is read once.
func LoadImage(ctx context.Context, s *session.Session, state topology.State, source ImageSource,
	images []string) error {
	var nodes []access.Connection
	for _, n := range state.Running() {
		nodes = append(nodes, s.Node(n.Name))
	}
	if len(nodes) == 0 {
		return s.Off("no node of cluster " + s.Name + " runs")
	}
	if err := source.lacks(ctx, images); err != nil {
		return err
	}
	command := host.Command{Args: []string{s.Provider.ProgramPath(), archiveCommand, "load"}}
	load := func(ctx context.Context) error { return source.copyTo(ctx, command, nodes, images) }
	name := "load " + strings.Join(images, ", ") + " from " + source.Name + " into the nodes"
	return s.Run(ctx, step.Plan{{step.Always("load-images", name, load)}})
}

// ImagesOf returns the Docker of a node as a source.
func ImagesOf(s *session.Session, state topology.State, name string) (ImageSource, error) {
	n, err := state.Topology(s.Name).PickRunning(name, state)
	node, program := s.Node(n.Name), s.Provider.ProgramPath()
	return ImageSource{
		Name: "node " + n.Name,
		Has: func(ctx context.Context, image string) (bool, error) {
			found, err := access.Output(ctx, node, program, archiveCommand, "list", image)
			return found != "", err
		},
		Save: func(ctx context.Context, to io.Writer, images ...string) error {
			return node.Exec(ctx, host.Command{
				Args: append([]string{program, archiveCommand, "save"}, images...), Stdout: to,
			})
		},
	}, err
}

// lacks returns the images that the source does not have.
func (s ImageSource) lacks(ctx context.Context, images []string) error {
	return host.Each(images, func(image string) error {
		has, err := s.Has(ctx, image)
		if err == nil && !has {
			err = &step.Problem{
				Name: "image-missing", Text: s.Name + " has no image " + image,
				Remedy: "pull or build it first (`docker pull " + image + "`)",
			}
		}
		return err
	})
}

// copyTo reads the images once, and runs a command that loads them on all nodes. If a node fails,
// the others continue.
//
//	source.Save -> io.MultiWriter -> untilError -> pipe -> Exec on a node (one goroutine each)
func (s ImageSource) copyTo(
	ctx context.Context, load host.Command, nodes []access.Connection, images []string,
) error {
	var wg sync.WaitGroup
	var writers []io.Writer
	var pipes []*io.PipeWriter
	errs := make([]error, len(nodes))
	for i, node := range nodes {
		load := load
		reader, writer := io.Pipe()
		writers, pipes = append(writers, &untilError{to: writer}), append(pipes, writer)
		wg.Go(func() {
			load.Stdin = reader
			errs[i] = node.Exec(ctx, load)
			reader.CloseWithError(io.ErrClosedPipe)
		})
	}
	err := s.Save(ctx, io.MultiWriter(writers...), images...)
	for _, p := range pipes {
		p.CloseWithError(err)
	}
	wg.Wait()
	return errors.Join(append(errs, err)...)
}

// untilError writes until the first error. It drops the rest, so that an
// io.MultiWriter continues with its other writers.
type untilError struct {
	to     io.Writer
	failed bool
}

func (u *untilError) Write(p []byte) (int, error) {
	if !u.failed {
		_, err := u.to.Write(p)
		u.failed = err != nil
	}
	return len(p), nil
}
