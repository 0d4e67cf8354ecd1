package containerd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ownerLabel marks containerd's namespace of pods if kube-bootstrap created
// it. Undo then removes the whole namespace, also if all records are lost.
const ownerLabel = "kube-bootstrap.dev/owner"

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

// noteBefore records, once, what Undo of Pods must not remove. It runs before CRI
// is enabled and before images are loaded.
func (r Runtime) noteBefore(ctx context.Context) error {
	return beforeRecord.Ensure(r.Files, func(error) (before, error) { return r.lookBefore(ctx) })
}

// before returns the record or, if it was lost, the result of lookBefore.
func (r Runtime) before(ctx context.Context) (before, error) {
	b, err := beforeRecord.Read(r.Files)
	if !host.Lost(err) {
		return b, err
	}
	return r.lookBefore(ctx)
}

// lookBefore determines the state before the first pod. If the record was
// lost, it runs late: the namespace then has ownerLabel, and the existing
// paths belong to pods of kube-bootstrap.
func (r Runtime) lookBefore(ctx context.Context) (b before, err error) {
	b.Images, b.Paths = []string{}, []string{}
	is, made, err := r.hasNamespace(ctx)
	if err != nil {
		return b, err
	}
	if made || r.Files.Exists(podsFile) {
		return b, r.lookLate(ctx, &b, is && !made)
	}
	for _, path := range podPaths {
		if r.Files.Exists(path) {
			b.Paths = append(b.Paths, path)
		}
	}
	if b.HostPorts, err = host.HasChain("nat", hostPortChain); err != nil || !is {
		return b, err
	}
	b.Namespace = true
	b.Images, err = r.imageNames(ctx)
	return b, err
}

// lookLate keeps the images of a namespace that kube-bootstrap did not
// create, and chains that pods of another CNI network may use.
func (r Runtime) lookLate(ctx context.Context, b *before, namespace bool) error {
	networks, err := r.Files.Entries(networksDir)
	if err != nil {
		return err
	}
	b.HostPorts = slices.ContainsFunc(networks, func(name string) bool { return name != networkName })
	if b.Namespace = namespace; !namespace {
		return nil
	}
	names, err := r.imageNames(ctx)
	b.Images = append(b.Images, slices.DeleteFunc(names, func(name string) bool { return slices.Contains(r.Images, name) })...)
	return err
}

// ownPods reports whether kube-bootstrap created the pods of this host, so
// that Undo must remove them.
func (r Runtime) ownPods(ctx context.Context) (bool, error) {
	if r.Files.Exists(podsFile) {
		return true, nil
	}
	_, made, err := r.hasNamespace(ctx)
	if err != nil || made {
		return made, err
	}
	n, err := r.countContainers(ctx)
	if err == nil && n > 0 {
		step.Leave(ctx, fmt.Sprintf("%d containers of pods in containerd's namespace %s: no record states that kube-bootstrap created them; remove them with `crictl rmp --all --force`", n, namespace))
	}
	return false, err
}

// Left lists the pods that remain in a namespace with ownerLabel.
func (r Runtime) Left(ctx context.Context) ([]string, error) {
	_, made, err := r.hasNamespace(ctx)
	if err != nil || !made {
		return nil, err
	}
	n, err := r.countContainers(ctx)
	if n == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("%d containers of pods in containerd's namespace %s", n, namespace)}, err
}

// hasNamespace reports whether the namespace of pods exists, and whether
// kube-bootstrap created it.
func (r Runtime) hasNamespace(ctx context.Context) (is, made bool, err error) {
	err = r.with(ctx, func(ctx context.Context, c *client.Client) error {
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

// makeNamespace creates the namespace of CRI before images are loaded into it. A
// namespace that did not exist before gets a label, by which turndown finds it.
func (r Runtime) makeNamespace(ctx context.Context) error {
	b, err := beforeRecord.Read(r.Files)
	if err != nil {
		return err
	}
	return r.with(ctx, func(ctx context.Context, c *client.Client) error {
		err := c.NamespaceService().Create(ctx, namespace, nil)
		if err != nil && !errdefs.IsAlreadyExists(err) || b.Namespace {
			return ignoreExisting(err)
		}
		return c.NamespaceService().SetLabel(ctx, namespace, ownerLabel, "pods")
	})
}

func ignoreExisting(err error) error {
	if errdefs.IsAlreadyExists(err) {
		return nil
	}
	return err
}
