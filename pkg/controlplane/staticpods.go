package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// StaticPods writes the pods of the control plane where the kubelet finds
// them, and what they read. Others come later, see Late.
func (c ControlPlane) StaticPods() step.Step {
	return step.Step{
		Name: "write the static pods",
		Check: func(context.Context) (step.Diff, error) {
			reads, pods, err := c.podFiles()
			if errors.Is(err, fs.ErrNotExist) {
				return step.Diff{"write the pods in " + ManifestDir}, nil // what they read is not there yet
			}
			if err != nil {
				return nil, err
			}
			diff, err := c.Files.Missing(append(reads, pods...))
			if !c.Files.Exists(auditDir) {
				diff = append(diff, "make "+auditDir)
			}
			return diff, err
		},
		Apply: func(ctx context.Context) error {
			if err := c.Files.MkdirAll(auditDir); err != nil {
				return err
			}
			reads, pods, err := c.podFiles()
			if err != nil {
				return err
			}
			if err := c.Files.Put(reads); err != nil {
				return err
			}
			return exchange(ctx, c.Files, pods)
		},
		Undo: c.removePods,
	}
}

// podFiles lists what the pods read, which must be there before them, as the
// kubelet starts a pod as soon as it sees it.
func (c ControlPlane) podFiles() (reads, pods []host.File, err error) {
	if reads, err = c.apiserverFiles(); err != nil {
		return nil, nil, err
	}
	all := []component{c.apiserver(reads)}
	if !c.Joins {
		all = append(all, c.manager())
	}
	authorization, err := authorizationFiles(c.Files)
	if err != nil {
		return nil, nil, err
	}
	pods, err = c.podsOf(all)
	return append(reads, authorization...), pods, err
}

func (c ControlPlane) podsOf(pods []component) ([]host.File, error) {
	var tree []host.File
	for _, pod := range pods {
		file, err := c.podFile(pod)
		if err != nil {
			return nil, err
		}
		tree = append(tree, file)
	}
	return tree, nil
}

func (c ControlPlane) podFile(pod component) (host.File, error) {
	data, err := c.manifest(pod)
	if err != nil {
		return host.File{}, fmt.Errorf("manifest of %s: %w", pod.name, err)
	}
	return host.File{Path: podPath(pod.name), Data: data}, nil
}

// Late writes the static pods that wait for the API server to be ready: a
// scheduler that asks before it has its rights in a new cluster is refused, and
// asks again only seconds later. On a further control plane also the controller
// manager's, which must not work before the others share with it.
func (c ControlPlane) Late() step.Step {
	name := "write the static pod of the scheduler"
	if c.Joins {
		name += " and of the controller manager"
	}
	tree := func() ([]host.File, error) {
		pods := []component{c.scheduler()} // what they read is there by now
		if c.Joins {
			pods = append(pods, c.manager())
		}
		return c.podsOf(pods)
	}
	return step.Step{
		Name: name,
		Check: func(context.Context) (step.Diff, error) {
			files, err := tree()
			if err != nil {
				return nil, err
			}
			return c.Files.Missing(files)
		},
		Apply: func(ctx context.Context) error {
			files, err := tree()
			if err != nil {
				return err
			}
			return exchange(ctx, c.Files, files)
		},
		Undo: func(context.Context) error { return c.Files.Drop(podPath("kube-scheduler")) },
	}
}

func (c ControlPlane) removePods(context.Context) error {
	for _, name := range []string{"kube-apiserver", "kube-controller-manager"} {
		if err := c.Files.Remove(podPath(name)); err != nil {
			return err
		}
	}
	if err := c.Files.Drop(auditFile, admissionFile, authenticationFile, authorizationFile, nobodyFile); err != nil {
		return err
	}
	return c.Files.RemoveAll(auditDir)
}
