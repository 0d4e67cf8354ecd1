package containerd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"sync"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/util/version"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Socket is the path of the socket of the containerd that its methods ask.
type Socket string

// DefaultSocket is the socket of a containerd whose config does not set another.
const DefaultSocket Socket = "/run/containerd/containerd.sock"

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

// withCRI calls do with a client of CRI. CRI still lists pods that were removed through containerd's own API.
func (s Socket) withCRI(ctx context.Context, do func(runtime.RuntimeServiceClient) error) error {
	return s.with(ctx, func(_ context.Context, c *client.Client) error {
		conn, ok := c.Conn().(grpc.ClientConnInterface)
		if !ok {
			return errors.New("containerd is not reached by a connection of its own")
		}
		return do(runtime.NewRuntimeServiceClient(conn))
	})
}

// Follow calls up when containerd answers, and changed whenever an image for pods is removed.
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

var versionPattern = regexp.MustCompile(` v?(\d+\.\d+(\.\d+)?)`)

// unstamped is the assumed version of a containerd that was built without one.
const unstamped = "2.0.0"

// MissingProblem returns the problem that containerd is not installed [containerd-missing].
func MissingProblem() error {
	if host.HasProgram("containerd") {
		return nil
	}
	return &step.Problem{Name: "containerd-missing", Firm: true, Text: "containerd is not installed on this host",
		Remedy: "install it (containerd or containerd.io)"}
}

// OldProblem returns the problem that the host's containerd is older than a release [containerd-version]. It ignores
// that containerd is missing.
func OldProblem(ctx context.Context, oldest string) error {
	if MissingProblem() != nil {
		return nil
	}
	installed, err := installedVersion(ctx)
	if err != nil {
		return err
	}
	return tooOld(installed, oldest)
}

func tooOld(installed *version.Version, oldest string) error {
	if installed.AtLeast(version.MustParseGeneric(oldest)) {
		return nil
	}
	return &step.Problem{
		Name: "containerd-version",
		Text: fmt.Sprintf("the containerd of this host is %s, and this Kubernetes needs %s or newer",
			installed, oldest), Remedy: "update containerd",
	}
}

// versions contains the version of each program by its identity, because the program is slow to start and
// a run needs its version ten times.
var versions sync.Map // host.Identity → *version.Version

// installedVersion asks the program, because the daemon may not run yet.
func installedVersion(ctx context.Context) (*version.Version, error) {
	if err := MissingProblem(); err != nil {
		return nil, err
	}
	program := host.ProgramIdentity("containerd")
	if v, known := versions.Load(program); known {
		return v.(*version.Version), nil
	}
	text, err := host.Run(ctx, "containerd", "--version")
	if err != nil {
		return nil, err
	}
	v, err := version.ParseGeneric(parseVersion(text))
	if err == nil && program != (host.Identity{}) {
		versions.Store(program, v)
	}
	return v, step.Wrap(err, "containerd --version")
}

func parseVersion(text string) string {
	if m := versionPattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return unstamped
}
