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

// before lists what existed before the first pod and must remain after Undo.
// Its lists are never nil.
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

// note records, once, what Undo of Claim must not remove. It runs before CRI
// is enabled and before images are loaded.
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

// look determines the state before the first pod. If the record was lost, it
// runs late: the namespace then has ownerLabel, and the existing paths belong
// to pods of kube-bootstrap.
func (p Pods) look(ctx context.Context) (b before, err error) {
	b.Images, b.Paths = []string{}, []string{}
	is, made, err := p.Socket.hasNamespace(ctx)
	if err != nil {
		return b, err
	}
	if made || p.Files.Exists(podsFile) {
		err = p.lookLate(ctx, &b, is && !made)
		return b, err
	}
	for _, path := range podPaths {
		if p.Files.Exists(path) {
			b.Paths = append(b.Paths, path)
		}
	}
	if b.HostPorts, err = netfilter.HasChain("nat", hostPortChain); err != nil || !is {
		return b, err
	}
	b.Namespace = true
	b.Images, err = p.Socket.imageNames(ctx)
	return b, err
}

// lookLate keeps the images of a namespace that kube-bootstrap did not
// create, and chains that pods of another CNI network may use.
func (p Pods) lookLate(ctx context.Context, b *before, namespace bool) error {
	networks, err := p.Files.Entries(networksDir)
	if err != nil {
		return err
	}
	b.HostPorts = slices.ContainsFunc(networks, func(name string) bool { return name != networkName })
	if b.Namespace = namespace; !namespace {
		return nil
	}
	names, err := p.Socket.imageNames(ctx)
	b.Images = append(b.Images, slices.DeleteFunc(names, func(name string) bool { return slices.Contains(p.Images, name) })...)
	return err
}

// own reports whether kube-bootstrap created the pods of this host, so that
// Undo must remove them.
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

// createNamespace creates the namespace of CRI before images are loaded into it. A
// namespace that did not exist before gets a label, by which turndown finds it.
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
