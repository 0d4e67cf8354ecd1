package parts

import (
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// LoadBootstrap is the step that loads one image into the bootstrap Docker, so
// that its container need not wait for the other images.
func LoadBootstrap(h *local.Host, name string) step.Step {
	from := h.Source()
	from.Part = name
	from.Images = slices.DeleteFunc(slices.Clone(from.Images), func(i image.Image) bool { return i.Name != name })
	return from.Load(bootstrapStore())
}

// LoadMain is the step that loads the images of the main Docker.
func LoadMain(h *local.Host) step.Step { return h.Source().Load(mainStore()) }

// LoadContainerd is the step that loads the images of the pods.
func LoadContainerd(h *local.Host) step.Step { return h.Source().Load(podStore(h)) }

// LoadAll returns the steps that load images from a source into all stores of a
// host.
func LoadAll(h *local.Host, from offline.Source) []step.Step {
	return []step.Step{from.Load(mainStore()), from.Load(podStore(h)), from.Load(bootstrapStore())}
}

// DropReplaced returns the steps that remove the images of earlier versions that
// nothing uses any more.
func DropReplaced(h *local.Host) []step.Step {
	return []step.Step{h.Source().Drop(mainStore()), h.Source().Drop(podStore(h))}
}

func mainStore() imagestore.Target {
	return imagestore.Docker(image.Main, local.OpenDocker(local.MainSocket))
}

func bootstrapStore() imagestore.Target {
	return imagestore.Docker(image.Bootstrap, local.OpenDocker(bootstrapdocker.Socket))
}

func podStore(h *local.Host) imagestore.Target {
	return imagestore.Containerd(h.CRISocket(), "", host.StateDir)
}

// podImages lists the images of the catalogue for pods.
func podImages(h *local.Host) []string {
	var refs []string
	for _, i := range h.Images {
		if slices.Contains(i.Stores, image.Containerd) {
			refs = append(refs, i.Ref)
		}
	}
	return refs
}
