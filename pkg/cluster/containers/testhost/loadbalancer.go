package testhost

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// loadBalancer is a container with a fixed address that forwards connections to
// the API server of any control plane that is ready, however many control
// planes there are. It runs this program from an image of its own, without
// credentials, without capabilities, and with a read-only file system.
type loadBalancer struct{ Setup }

// LoadBalancer returns the step that starts the load balancer in the cluster's network.
func (u Setup) LoadBalancer() step.Step {
	if u.Topology.ControlPlanes() == 0 {
		return step.Step{}
	}
	f := loadBalancer{u}
	return runStep("load-balancer", "lead to the control planes of "+u.Cluster.Name, u.Cluster, f.container, f.publish)
}

// container describes the load balancer. An existing load balancer keeps its published ports,
// because not every command knows the settings of the cluster.
func (f loadBalancer) container(ctx context.Context) (docker.Container, programImage, error) {
	image, err := newProgramImage("kube-bootstrap/load-balancer:", f.Binary, nil)
	if err != nil {
		return docker.Container{}, image, err
	}
	name := containers.LoadBalancerName(f.Cluster.Name)
	now, exists, err := f.Cluster.Attached(ctx, name)
	if err != nil {
		return docker.Container{}, image, err
	}
	port, ports, on := uint16(f.APIPort), now.Ports, now.HostIP
	if !on.IsValid() {
		if on, err = f.Cluster.Engine.PublishAddr(ctx); err != nil {
			return docker.Container{}, image, err
		}
	}
	if f.Publish && !exists {
		ports = map[uint16]uint16{port: port}
	}
	for inside := range ports {
		port = inside
	}
	return docker.Container{
		Name: name, Image: image.name,
		Command: []string{
			"/kube-bootstrap", "load-balancer", "--name", controlPlaneName, "--port", strconv.Itoa(int(port)),
		},
		Env:     []string{"GOGC=25"}, // its heap is small: a few addresses and connections
		Restart: "unless-stopped",
		On: docker.Attachment{
			Cluster: f.Cluster.Name, Network: f.Cluster.Name, Addr: topology.LoadBalancerAddr(f.Subnet),
			Ports: ports, HostIP: on,
		},
	}, image, nil
}

// publish publishes the load balancer's port on the engine's machine, for clients
// without a route to the containers: the engine may run in a virtual machine or
// on another machine. Without --apiserver-port it tries the same pseudo-random
// ports each time, because only the engine knows which ports are free.
func (f loadBalancer) publish(ctx context.Context, c docker.Container) error {
	const tries = 10
	if len(c.On.Ports) > 0 {
		return f.run(ctx, c)
	}
	choice := fnv.New64a()
	_, _ = choice.Write([]byte(f.Cluster.Name))
	ports := rand.New(rand.NewPCG(choice.Sum64(), 0))
	for try := 1; ; try++ {
		// Below the ephemeral ports of Linux and the NodePorts of Kubernetes.
		c.On.Ports = map[uint16]uint16{uint16(f.APIPort): uint16(20000 + ports.IntN(10000))}
		err := f.run(ctx, c)
		if !errors.Is(err, docker.ErrPortTaken) || try == tries {
			return err
		}
		if err := f.Cluster.Engine.Remove(ctx, c.Name); err != nil {
			return err
		}
	}
}

// run publishes the ports on all addresses if the engine's machine does not have
// the address by which this machine reaches it, as behind address translation.
func (f loadBalancer) run(ctx context.Context, c docker.Container) error {
	err := f.Cluster.Engine.Run(ctx, c)
	if !errors.Is(err, docker.ErrNoHostIP) {
		return err
	}
	if err := f.Cluster.Engine.Remove(ctx, c.Name); err != nil {
		return err
	}
	c.On.HostIP = netip.IPv4Unspecified()
	return f.Cluster.Engine.Run(ctx, c)
}

// runStep returns the step that runs a container of a programImage.
func runStep(id step.ID, name string, cluster containers.Cluster,
	describe func(context.Context) (docker.Container, programImage, error),
	run func(context.Context, docker.Container) error) step.Step {
	return step.Step{
		ID: id, Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			c, _, err := describe(ctx)
			if err != nil {
				return nil, err
			}
			return cluster.Engine.Running(ctx, c)
		},
		Apply: func(ctx context.Context) error {
			c, image, err := describe(ctx)
			if err != nil {
				return err
			}
			if err := image.ensure(ctx, cluster); err != nil {
				return err
			}
			return run(ctx, c)
		},
	}
}

// programImage is an image with this program, and with other files. Another content has another
// name. Like the host images, it stays until the last cluster is removed.
type programImage struct {
	name   string
	binary string
	files  []docker.ImageFile
}

func newProgramImage(prefix, binary string, files []docker.ImageFile) (programImage, error) {
	sum, err := remote.Sum(binary)
	if err != nil {
		return programImage{}, err
	}
	for _, f := range files {
		next := sha256.Sum256(append([]byte(sum+f.Name), f.Data...))
		sum = hex.EncodeToString(next[:])
	}
	return programImage{prefix + sum[:12], binary, files}, nil
}

// ensure creates the image if the engine does not have it.
func (p programImage) ensure(ctx context.Context, c containers.Cluster) error {
	has, err := c.Engine.Images().Has(ctx, p.name)
	if err != nil || has {
		return err
	}
	return c.Engine.Images().ImportProgram(ctx, p.name, p.binary, p.files...)
}
