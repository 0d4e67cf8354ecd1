package containerd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// before lists what existed before the first pod and remains after Undo. Its lists are never nil.
type before struct {
	Namespace bool     `json:"namespace"` // containerd's k8s.io
	Images    []string `json:"images"`    // in it
	HostPorts bool     `json:"hostPorts"` // portmap's chains
	Paths     []string `json:"paths"`     // the elements of podPaths that existed
}

// beforeRecord is written before the first image is loaded.
var beforeRecord = host.Record[before]{Path: host.StateDir + "/containerd-before.json", Valid: before.valid}

func (b before) valid() error {
	if b.Images == nil || b.Paths == nil {
		return errors.New("it has no list of images or paths")
	}
	for _, path := range b.Paths {
		if !slices.Contains(podPaths, path) {
			return fmt.Errorf("%q is not a path of pods", path)
		}
	}
	return nil
}

// note saves, once, what Undo must not remove, before CRI is enabled and images are loaded.
func (p Pods) note(ctx context.Context) error {
	return beforeRecord.Ensure(p.Files, func(error) (before, error) { return p.look(ctx) })
}

// before returns the record or, if it was lost, the result of look.
func (p Pods) before(ctx context.Context) (before, error) {
	b, err := beforeRecord.Read(p.Files)
	if !host.Lost(err) {
		return b, err
	}
	return p.look(ctx)
}

// look determines the state before the first pod. If the record was lost, it is late: existing
// paths then belong to our pods, and the chains to those of another CNI network, if there is one.
func (p Pods) look(ctx context.Context) (before, error) {
	b := before{Images: []string{}, Paths: []string{}}
	is, made, err := p.Socket.hasNamespace(ctx)
	if err != nil {
		return b, err
	}
	late := made || p.Files.Exists(podsFile)
	if late {
		var networks []string
		networks, err = p.Files.Entries(networksDir)
		b.HostPorts = slices.ContainsFunc(networks, func(name string) bool { return name != networkName })
	} else {
		b.Paths = slices.DeleteFunc(slices.Clone(podPaths), func(path string) bool { return !p.Files.Exists(path) })
		b.HostPorts, err = netfilter.HasChain("nat", hostPortChain)
	}
	b.Namespace = is && !made
	if err != nil || !b.Namespace {
		return b, err
	}
	names, err := p.Socket.imageNames(ctx)
	ours := func(name string) bool { return late && slices.Contains(p.Images, name) }
	b.Images = append(b.Images, slices.DeleteFunc(names, ours)...)
	return b, err
}

// own reports whether kube-bootstrap created the pods of this host, which Undo then removes.
func (p Pods) own(ctx context.Context) (bool, error) {
	if p.Files.Exists(podsFile) {
		return true, nil
	}
	_, made, err := p.Socket.hasNamespace(ctx)
	if err != nil || made {
		return made, err
	}
	n, err := p.Socket.countContainers(ctx)
	if err == nil && n > 0 {
		step.Leave(ctx, fmt.Sprintf("%d containers of pods in containerd's namespace %s: no record states that kube-bootstrap created them; remove them with `crictl rmp --all --force`", n, namespace))
	}
	return false, err
}

// createNamespace creates the namespace before images are loaded into it. A new one gets a label.
func (p Pods) createNamespace(ctx context.Context) error {
	b, err := beforeRecord.Read(p.Files)
	if err != nil {
		return err
	}
	return p.Socket.with(ctx, func(ctx context.Context, c *client.Client) error {
		if err := c.NamespaceService().Create(ctx, namespace, nil); err != nil && !errdefs.IsAlreadyExists(err) {
			return err
		}
		if b.Namespace {
			return nil
		}
		return c.NamespaceService().SetLabel(ctx, namespace, ownerLabel, "pods")
	})
}
