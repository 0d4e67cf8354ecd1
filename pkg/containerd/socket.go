package containerd

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"google.golang.org/grpc"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Socket is the path of containerd's socket, /run/containerd/containerd.sock.
// Its methods ask the containerd that listens there.
type Socket string

// notRunning is the error that no process listens on containerd's socket.
type notRunning struct{ error }

func (n notRunning) Unwrap() error { return n.error }

// open returns a client of a containerd that answers.
func (s Socket) open(ctx context.Context) (*client.Client, error) {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	// The client would wait until the socket exists.
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", string(s))
	if err != nil && !step.IsUnanswered(step.Serves(err)) {
		return nil, notRunning{fmt.Errorf("it does not run: %w", err)}
	}
	if err != nil {
		return nil, step.NoAnswer(err)
	}
	conn.Close()
	c, err := client.New(string(s), client.WithDefaultNamespace(namespace), client.WithTimeout(step.CheckLimit(ctx)))
	if err != nil {
		return nil, step.NoAnswer(err)
	}
	if ok, err := c.IsServing(ctx); err != nil || !ok {
		c.Close()
		return nil, step.NoAnswer(fmt.Errorf("it does not answer: %w", errors.Join(err, ctx.Err())))
	}
	return c, nil
}

func (s Socket) serves(ctx context.Context) error {
	c, err := s.open(ctx)
	if err != nil {
		return err
	}
	return c.Close()
}

// criServes asks containerd whether the CRI plugin was loaded.
func (s Socket) criServes(ctx context.Context) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	c, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	found, err := c.IntrospectionService().Plugins(ctx, "id==cri")
	if err != nil {
		return step.NoAnswer(err)
	}
	if len(found.Plugins) == 0 {
		return errors.New("its CRI is disabled")
	}
	if failed := found.Plugins[0].InitErr; failed != nil {
		return fmt.Errorf("its CRI did not start: %s", failed.Message)
	}
	return nil
}

// with calls do with a client. It does nothing if containerd does not run.
func (s Socket) with(ctx context.Context, do func(context.Context, *client.Client) error) error {
	c, err := s.open(ctx)
	if errors.As(err, new(notRunning)) {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	defer c.Close()
	return do(namespaces.WithNamespace(ctx, namespace), c)
}

// withCRI serves where containerd does not: CRI lists pods that were removed in another way.
func (s Socket) withCRI(ctx context.Context, do func(runtime.RuntimeServiceClient) error) error {
	return s.with(ctx, func(_ context.Context, c *client.Client) error {
		conn, ok := c.Conn().(grpc.ClientConnInterface)
		if !ok {
			return errors.New("containerd is not reached by a connection of its own")
		}
		return do(runtime.NewRuntimeServiceClient(conn))
	})
}

// Follow calls up when containerd answers, and changed whenever an image for
// pods is removed, until ctx or containerd ends.
func (s Socket) Follow(ctx context.Context, up, changed func()) error {
	return s.with(ctx, func(ctx context.Context, c *client.Client) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		events, failed := c.Subscribe(ctx, `namespace=="`+namespace+`",topic=="/images/delete"`)
		up()
		for {
			select {
			case <-events:
				changed()
			case err := <-failed:
				return err
			}
		}
	})
}
