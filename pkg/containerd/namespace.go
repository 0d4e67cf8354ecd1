package containerd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/errdefs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ownerLabel marks containerd's namespace of pods if kube-bootstrap created it. Undo then removes the whole namespace,
// also if all records are lost.
const ownerLabel = "kube-bootstrap.dev/owner"

func (s Socket) countContainers(ctx context.Context) (n int, err error) {
	err = s.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.Containers(ctx)
		n = len(all)
		return err
	})
	return n, err
}

func (s Socket) imageNames(ctx context.Context) (names []string, err error) {
	err = s.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.ImageService().List(ctx)
		for _, one := range all {
			names = append(names, one.Name)
		}
		return err
	})
	return names, err
}

// removeImages removes the images that did not exist before, or the whole namespace. containerd collects their content
// with the last image.
func (s Socket) removeImages(ctx context.Context, b before) error {
	return s.with(ctx, func(ctx context.Context, c *client.Client) error {
		if !b.Namespace {
			return imagestore.RemoveNamespace(ctx, c, namespace)
		}
		all, err := c.ImageService().List(ctx)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(i images.Image) bool { return slices.Contains(b.Images, i.Name) })
		for i, one := range all {
			var options []images.DeleteOpt
			if i == len(all)-1 {
				options = append(options, images.SynchronousDelete())
			}
			if err := gone(c.ImageService().Delete(ctx, one.Name, options...)); err != nil {
				return err
			}
		}
		return nil
	})
}

// hasNamespace reports whether the namespace of pods exists, and whether we created it.
func (s Socket) hasNamespace(ctx context.Context) (is, made bool, err error) {
	err = s.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.NamespaceService().List(ctx)
		if is = slices.Contains(all, namespace); !is || err != nil {
			return err
		}
		labels, err := c.NamespaceService().Labels(ctx, namespace)
		made = labels[ownerLabel] != ""
		return gone(err)
	})
	return is, made, err
}

// Left lists the pods that remain in a namespace with ownerLabel.
func (s Socket) Left(ctx context.Context) ([]string, error) {
	_, made, err := s.hasNamespace(ctx)
	if err != nil || !made {
		return nil, err
	}
	n, err := s.countContainers(ctx)
	if n == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("%d containers of pods in containerd's namespace %s", n, namespace)}, err
}

// killPods removes all containers and sandboxes of pods.
func (s Socket) killPods(ctx context.Context) error {
	return s.with(ctx, func(ctx context.Context, c *client.Client) error {
		// containerd also reacts to the end of a pod, so that a call may fail then.
		return step.Until(ctx, func(ctx context.Context) error {
			return errors.Join(removeContainers(ctx, c), removeSandboxes(ctx, c))
		}, nil)
	})
}

// removeContainers removes containers before their sandboxes, whose network they share.
func removeContainers(ctx context.Context, c *client.Client) error {
	for _, filter := range []string{`labels."io.cri-containerd.kind"!=sandbox`, ``} {
		if err := imagestore.RemoveContainers(ctx, c, filter); err != nil {
			return err
		}
	}
	return nil
}

// removeSandboxes removes the sandbox records of containerd 2.
func removeSandboxes(ctx context.Context, c *client.Client) error {
	all, err := c.SandboxStore().List(ctx)
	if errdefs.IsNotImplemented(err) { // containerd 1.6
		return nil
	}
	return errors.Join(err, host.Each(all,
		func(one sandbox.Sandbox) error { return gone(c.SandboxStore().Delete(ctx, one.ID)) }))
}

// gone returns nil for a "not found" error.
func gone(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// before lists what existed before the first pod and remains after Undo. Its lists are never nil.
type before struct {
	Namespace bool     `json:"namespace"` // containerd's k8s.io
	Images    []string `json:"images"`    // in it
	HostPorts bool     `json:"hostPorts"` // portmap's chains
	Paths     []string `json:"paths"`     // the elements of podPaths and criPaths that existed
}

// beforeRecord is written before the first image is loaded.
var beforeRecord = host.Record[before]{Path: host.StateDir + "/containerd-before.json", Valid: before.valid}

func (b before) valid() error {
	if b.Images == nil || b.Paths == nil {
		return errors.New("it has no list of images or paths")
	}
	for _, path := range b.Paths {
		if !slices.Contains(podPaths, path) && !slices.Contains(criPaths, path) {
			return fmt.Errorf("%q is not a path of pods", path)
		}
	}
	return nil
}

// note saves, once, what Undo must not remove, before CRI is enabled and images are loaded.
func (p Pods) note(ctx context.Context) error {
	return beforeRecord.Ensure(p.Files, func(error) (before, error) { return p.inspect(ctx) })
}

// before returns the record or, if it was lost, the result of inspect.
func (p Pods) before(ctx context.Context) (before, error) {
	b, err := beforeRecord.Read(p.Files)
	if !host.Lost(err) {
		return b, err
	}
	return p.inspect(ctx)
}

// inspect determines the state before the first pod. If the record was lost, pods may exist: existing paths then
// belong to our pods, and the chains to the pods of another CNI network, if any.
func (p Pods) inspect(ctx context.Context) (before, error) {
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
		b.Paths = p.existing()
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

// existing lists the elements of podPaths and criPaths that exist.
func (p Pods) existing() []string {
	dirs := FindDirs(p.Files)
	missing := func(path string) bool { return !p.Files.Exists(dirs.at(path)) }
	return slices.DeleteFunc(slices.Concat(podPaths, criPaths), missing)
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
		step.Leave(ctx, fmt.Sprintf("%d containers of pods in containerd's namespace %s: no record states that "+
			"kube-bootstrap created them; remove them with `crictl rmp --all --force`", n, namespace))
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
