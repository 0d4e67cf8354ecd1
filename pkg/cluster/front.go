package cluster

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The front is a container with a fixed address that forwards connections to
// the API server of any control plane that is ready, however many control
// planes there are. It runs this program from an image of its own, without
// credentials, without capabilities, and with a read-only file system.

const (
	// frontAddr is the index of the front's address in the subnet, between the
	// control planes and the workers.
	frontAddr = 1 + masterAddrs
	// controlPlaneName is the network alias of all control planes.
	controlPlaneName = "control-plane"
	frontImages      = "kube-bootstrap/front:"
)

// frontName contains a dot, which no host name does.
func (f *fleet) frontName() string { return f.Name + ".api" }

// front returns the step that starts the front. A cluster of bare hosts has no
// front.
func (f *fleet) front() []step.Step {
	if len(f.Hosts) > 0 {
		return nil
	}
	return []step.Step{{
		Name: "lead to the control planes of " + f.Name,
		Check: func(ctx context.Context) (step.Diff, error) {
			c, err := f.frontContainer(ctx)
			if err != nil {
				return nil, err
			}
			return f.docker.Running(ctx, c)
		},
		Apply: f.startFront,
	}}
}

// frontContainer describes the front. An existing front keeps its published
// ports, because not every command knows the settings of the cluster.
func (f *fleet) frontContainer(ctx context.Context) (docker.Container, error) {
	sum, err := sumOf(f.Binary)
	if err != nil {
		return docker.Container{}, err
	}
	now, exists, err := f.docker.Attached(ctx, f.Name, f.frontName())
	if err != nil {
		return docker.Container{}, err
	}
	port, ports := uint16(f.APIPort), now.Ports
	if f.Publish && !exists {
		ports = map[uint16]uint16{port: port}
	}
	for inside := range ports {
		port = inside
	}
	return docker.Container{
		Name: f.frontName(), Image: frontImages + f.Name + "." + sum[:12],
		Command: []string{"/kube-bootstrap", "front", "--name", controlPlaneName, "--port", strconv.Itoa(int(port))},
		Env:     []string{"GOGC=25"}, // its heap is small: a few addresses and connections
		Restart: "unless-stopped",
		On:      docker.Attachment{Fleet: f.Name, Network: f.Name, Addr: addrAt(f.Subnet, frontAddr), Ports: ports},
	}, nil
}

func (f *fleet) startFront(ctx context.Context) error {
	c, err := f.frontContainer(ctx)
	if err != nil {
		return err
	}
	has, err := f.docker.HasImage(ctx, c.Image)
	if err == nil && !has {
		err = f.docker.ImportProgram(ctx, c.Image, f.Name, f.Binary)
	}
	if err != nil {
		return err
	}
	if err := f.publishFront(ctx, c); err != nil {
		return err
	}
	return f.dropOldFronts(ctx, c.Image)
}

// publishFront publishes the front's port on the engine's machine, for clients
// without a route to the containers: the engine may run in a virtual machine or
// on another machine. Without --apiserver-port it tries the same pseudo-random
// ports each time, because only the engine knows which ports are free.
func (f *fleet) publishFront(ctx context.Context, c docker.Container) error {
	const tries = 10
	if len(c.On.Ports) > 0 {
		return f.docker.Run(ctx, c)
	}
	choice := fnv.New64a()
	_, _ = choice.Write([]byte(f.Name))
	ports := rand.New(rand.NewPCG(choice.Sum64(), 0)) //nolint:gosec // no secret
	for try := 1; ; try++ {
		// Below the ephemeral ports of Linux and the NodePorts of Kubernetes.
		c.On.Ports = map[uint16]uint16{uint16(f.APIPort): uint16(20000 + ports.IntN(10000))}
		err := f.docker.Run(ctx, c)
		if !errors.Is(err, docker.ErrPortTaken) || try == tries {
			return err
		}
		if err := f.docker.Remove(ctx, c.Name); err != nil {
			return err
		}
	}
}

// dropOldFronts removes the front images of earlier program versions.
func (f *fleet) dropOldFronts(ctx context.Context, now string) error {
	images, err := f.docker.Images(ctx, f.Name)
	errs := []error{err}
	for _, image := range images {
		if strings.HasPrefix(image, frontImages) && image != now {
			errs = append(errs, f.docker.RemoveImage(ctx, image))
		}
	}
	return errors.Join(errs...)
}

// APIServer returns the URL at which this machine reaches the API server of a
// cluster, whichever control planes run.
func APIServer(ctx context.Context, options Options) (string, error) {
	f, err := open(options, nil)
	if err != nil {
		return "", err
	}
	defer f.docker.Close()
	s, err := f.reach(ctx)
	return s.url, err
}

// server is the URL at which this machine reaches the API server. The
// certificates of all API servers are valid for certName.
type server struct{ url string }

const certName = "kubernetes"

// reach returns the front's own address if this machine has a route to the
// cluster's network. An engine in a virtual machine or on another machine has
// no such route. There, reach returns the published port.
func (f *fleet) reach(ctx context.Context) (server, error) {
	front, _, err := f.docker.Attached(ctx, f.Name, f.frontName())
	if err != nil {
		return server{}, f.noAnswer(err)
	}
	if !front.Running {
		return server{}, &step.Problem{Name: "front-off", Text: "container " + f.frontName() + ", which leads to the control planes, does not run",
			Remedy: "run `kube-bootstrap cluster up --name " + f.Name + "`"}
	}
	engine, err := f.docker.MachineName(ctx)
	if err != nil {
		return server{}, err
	}
	if engine != "" {
		return publishedAt(engine, front)
	}
	routes, err := host.Routes()
	if err != nil {
		return server{}, fmt.Errorf("routes: %w", err)
	}
	if slices.ContainsFunc(routes, func(r host.Route) bool { return r.Dst.Bits() > 0 && r.Dst.Contains(front.Addr) }) {
		for inside := range front.Ports {
			return server{url: "https://" + netip.AddrPortFrom(front.Addr, inside).String()}, nil
		}
	}
	return publishedAt("127.0.0.1", front)
}

func publishedAt(address string, front docker.Attached) (server, error) {
	for _, port := range front.Ports {
		return server{url: "https://" + net.JoinHostPort(address, strconv.Itoa(int(port)))}, nil
	}
	return server{}, errors.New("the container in front of the control planes publishes no port")
}
