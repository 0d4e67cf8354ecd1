package parts

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// FurtherAddons returns the steps that apply the user's addons. Only the
// first control plane applies them. No step waits for their pods, because the
// cluster works without them.
func FurtherAddons(h *local.Host) []step.Step {
	var all []step.Step
	for _, name := range WantedAddons(h) {
		if !addon.Contained(name) {
			all = append(all, ApplyManifest(h, "apply addon "+name, AddonManifest(h, name)))
		}
	}
	all = append(all, ContainedAddons(h)...)
	for _, name := range DroppedAddons(h) {
		all = append(all, Addons(h).RemoveNamed(name))
	}
	if dropsAddresses(h) {
		all = append(all, Addons(h).RemoveAddresses())
	}
	return all
}

// dropsAddresses reports whether metallb stays without the addresses in force.
func dropsAddresses(h *local.Host) bool {
	return h.Saved.Role == local.Master && slices.Contains(WantedAddons(h), config.AddonMetalLB) &&
		len(h.Saved.Config.LoadBalancerAddresses) > 0 && len(h.Config.LoadBalancerAddresses) == 0
}

// ContainedAddons returns the steps that apply the wanted addons that
// kube-bootstrap contains. They are deferred, because a manifest contains a
// certificate that an earlier step issues.
func ContainedAddons(h *local.Host) (all []step.Step) {
	for _, name := range WantedAddons(h) {
		if addon.Contained(name) {
			all = append(all, later("apply addon "+name, func() (step.Step, error) {
				_, err := h.Files.Read(controlplane.KubeletCAFile)
				return Addons(h).ApplyNamed(name), err
			}))
		}
	}
	return all
}

// DroppedAddons returns the contained addons that only the settings in force have.
func DroppedAddons(h *local.Host) []string {
	if h.Saved.Role != local.Master || h.Config.Join {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(h.Saved.Config.Addons), func(name string) bool {
		return !addon.Contained(name) || slices.Contains(h.Config.Addons, name)
	})
}

// LocalVolumes lists the claims whose volumes of local-path have data on this
// host. The name of a volume's directory is VOLUME_NAMESPACE_CLAIM.
func LocalVolumes(files host.Files) (claims []string) {
	entries, _ := os.ReadDir(files.Path(kubelet.VolumesDir)) // missing without such volumes
	for _, e := range entries {
		_, claim, _ := strings.Cut(e.Name(), "_")
		claims = append(claims, strings.Replace(claim, "_", "/", 1))
	}
	return claims
}

// WantedAddons returns the names of the addons that this host applies.
func WantedAddons(h *local.Host) []string {
	if h.Config.Join {
		return nil
	}
	return h.Config.Addons
}

// AddonManifest returns the manifest of an addon.
func AddonManifest(h *local.Host, name string) Manifest {
	from := addon.Where(name)
	return Manifest{h, "addons", from, host.StateDir + "/addons/" + addon.Hash(from) + ".yaml"}
}

// Manifest is a YAML file of the user, given by path or URL. A copy of it is
// saved once it was applied, because a second run must not depend on the
// user's file or on the internet. The first line of the copy is its origin.
type Manifest struct {
	host       *local.Host
	field      string // of the settings
	from, kept string
}

// text returns the manifest: the saved copy of a download, and otherwise the
// user's file, or the saved copy if that cannot be read.
func (m Manifest) text(ctx context.Context) ([]byte, error) {
	kept, err := m.host.Files.Read(m.kept)
	isKept := err == nil && bytes.HasPrefix(kept, m.origin())
	if isKept && config.IsURL(m.from) {
		return kept, nil
	}
	data, err := m.fetch(ctx)
	if err != nil && isKept {
		return kept, nil
	}
	return append(m.origin(), data...), err
}

func (m Manifest) fetch(ctx context.Context) ([]byte, error) {
	if !config.IsURL(m.from) {
		if local.Foreign(m.host, m.field, m.from) {
			return nil, local.ForeignError(m.field, m.from)
		}
		return os.ReadFile(m.from)
	}
	return m.host.Downloads.Get(m.host.Limited(ctx), m.from)
}

func (m Manifest) origin() []byte { return []byte("# from " + m.from + "\n") }

// Check returns an error if the manifest cannot be applied.
func (m Manifest) Check(ctx context.Context) error {
	data, err := m.text(ctx)
	if err != nil {
		return err
	}
	return addon.CheckManifest(data)
}

func (m Manifest) keep(ctx context.Context) error {
	data, err := m.text(ctx)
	if err != nil {
		return err
	}
	return m.host.Files.Put([]host.File{{Path: m.kept, Data: data}})
}

// ApplyManifest returns the step that applies a manifest and saves a copy
// once the API server has accepted it. Undo only removes the copy, because
// the objects disappear with the cluster.
func ApplyManifest(h *local.Host, name string, m Manifest) step.Step {
	within := func(ctx context.Context) step.Step {
		return Addons(h).ApplyManifest(name, func() ([]byte, error) { return m.text(ctx) })
	}
	return step.Step{
		Name:  name,
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) { return within(ctx).Check(ctx) },
		Apply: func(ctx context.Context) error {
			if err := within(ctx).Apply(ctx); err != nil {
				return err
			}
			return m.keep(ctx)
		},
		Undo: func(context.Context) error { return h.Files.Drop(m.kept) },
	}
}
