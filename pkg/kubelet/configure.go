package kubelet

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Configure is the step that writes the files that the kubelet reads. Undo removes
// all files, mounts and rules of the kubelet and of kube-proxy. It must run after the
// removal of the pods, which use them.
func (k Kubelet) Configure() step.Step {
	return step.Step{
		Name: "configure the kubelet",
		Check: func(context.Context) (step.Diff, error) {
			tree, err := k.files()
			if err != nil {
				return nil, err
			}
			diff, err := k.Files.Missing(tree)
			if err != nil {
				return nil, err
			}
			record, err := foundRecord.Diff(k.Files)
			if err != nil {
				return nil, err
			}
			diff = append(diff, record...)
			identity, err := k.Identity.diff()
			return append(diff, identity...), err
		},
		Apply: func(ctx context.Context) error {
			if err := rememberFound(ctx, k.Files); err != nil {
				return err
			}
			tree, err := k.files()
			if err != nil {
				return err
			}
			if err := k.Files.Put(tree); err != nil {
				return err
			}
			return k.Identity.write(ctx, k.service().Remove)
		},
		Undo: func(ctx context.Context) error { return restoreFound(ctx, k.Files) },
	}
}

func (k Kubelet) files() ([]host.File, error) {
	path, own := resolv(k.Files)
	config, err := k.Config.encode(path, k.ControlPlane)
	if err != nil {
		return nil, err
	}
	tree := []host.File{{Path: configFile, Data: config}}
	if path == resolvFile {
		tree = append(tree, host.File{Path: resolvFile, Data: own, Mode: 0o644})
	}
	return tree, nil
}
