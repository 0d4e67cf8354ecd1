package parts

import (
	"bytes"
	"context"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Addons are the addons of the cluster that this host applies. A joining control plane applies none.
type Addons struct {
	addon.Applier
	Manifests Manifests
	Wanted    []string
	Dropped   []string // contained addons that only the settings in force have

	network        string // the other CNI plugin to apply, or ""
	dropsAddresses bool   // metallb stays without the addresses in force
}

func newAddons(h *local.Host) Addons {
	foreign := func(field, path string) bool { return local.Foreign(h, field, path) }
	a := Addons{
		Applier: addon.Applier{
			API:    kube.Kubeconfig(controlplane.AdminConf),
			Values: func() (addon.Values, error) { return addonSettings(h) },
		},
		Manifests: Manifests{h.Files, h.Downloads, h.Timeout(), foreign},
	}
	if h.Config.Join {
		return a
	}
	a.Wanted = h.Config.Addons
	if !h.ManagesNetwork() && h.Config.CNIPlugin != extension.CNINone {
		a.network = h.Config.CNIPlugin
	}
	if before := h.Saved.Config; h.Saved.Role == local.ControlPlane {
		a.Dropped = dropped(before.Addons, a.Wanted)
		a.dropsAddresses = slices.Contains(a.Wanted, extension.AddonMetalLB) &&
			len(before.LoadBalancerAddresses) > 0 && len(h.Config.LoadBalancerAddresses) == 0
	}
	return a
}

// dropped returns the contained addons of before that are not in wanted.
func dropped(before, wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(before), func(name string) bool {
		return !addon.Contained(name) || slices.Contains(wanted, name)
	})
}

// addonSettings returns the values in the manifests. It reads certificates that an earlier step issues.
func addonSettings(h *local.Host) (addon.Values, error) {
	ca, err := h.Files.Read(join.ClusterCAFile)
	kubeletCA, _ := h.Files.Read(controlplane.KubeletCAFile) // only metrics-server needs it, see ApplyNamed
	// Pods of addons use the single control plane, or the kubernetes Service, which
	// several control planes need and which is usable slightly later.
	podServer, forward := "", ""
	if !Several(h.Files, h.Config.Join) {
		podServer = net.JoinHostPort(h.IP(), strconv.Itoa(h.Config.APIServerPort))
	}
	// Otherwise CoreDNS would refuse to start.
	// https://github.com/coredns/coredns/blob/v1.14.6/plugin/forward/setup.go#L182-L184
	if kubelet.HasResolver(h.Files) {
		forward = "/etc/resolv.conf"
	}
	return addon.Values{
		ProxyImage: h.Program("kube-proxy"), DNSImage: h.Image("coredns"),
		FlannelImage: h.Image("flannel"), Backend: h.Config.FlannelBackend,
		Server: local.BalancedAPI(h), PodServer: podServer,
		Forward: forward, PodCIDR: h.Config.FlannelNetwork.IPv4(),
		DNSDomain: h.Config.DNSDomain, DNSIP: h.Config.DNSServerIP,
		ClusterCA: ca, ProxyFields: h.Config.ProxyFields(),
		KubeletCA: kubeletCA, MetricsImage: h.Image("metrics-server"),
		LocalPathImage: h.Image("local-path-provisioner"), HelperImage: h.Image("hyperkube"),
		VolumesDir:      kubelet.VolumesDir,
		ControllerImage: h.Image("metallb-controller"), SpeakerImage: h.Image("metallb-speaker"),
		LoadBalancerAddresses: h.Config.LoadBalancerAddresses,
	}, err
}

// Network is the step that applies the pod network before any other pod, because no pod
// starts without it.
func (a Addons) Network() step.Step {
	const id, name = step.ID("pod-network"), "apply the pod network"
	switch a.network {
	case "":
		return step.Step{}
	case extension.CNIFlannel:
		return a.ApplyManifest(id, name, a.Flannel)
	}
	return a.apply(id, name, a.Manifests.Network(a.network))
}

// Further returns the steps that apply the user's addons. No step waits for their pods, because the
// cluster works without them.
func (a Addons) Further() []step.Step {
	var all []step.Step
	for _, name := range a.Wanted {
		if !addon.Contained(name) {
			all = append(all, a.apply(step.IDOf("addon", name), "apply addon "+name, a.Manifests.Addon(name)))
		}
	}
	all = append(all, a.Contained()...)
	for _, name := range a.Dropped {
		all = append(all, a.RemoveNamed(name))
	}
	if a.dropsAddresses {
		all = append(all, a.RemoveAddresses())
	}
	return all
}

// Contained returns the steps that apply the wanted addons that
// kube-bootstrap contains.
func (a Addons) Contained() (all []step.Step) {
	for _, name := range a.Wanted {
		if addon.Contained(name) {
			all = append(all, a.ApplyNamed(name))
		}
	}
	return all
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

// Copies of manifests of the user, see UserManifest.
const (
	NetworkFile = host.StateDir + "/network.yaml"
	AddonsDir   = host.StateDir + "/addons"
)

// Manifests are the manifests of the user that the settings name.
type Manifests struct {
	files     host.Files
	downloads *local.Downloads
	limit     time.Duration
	foreign   func(field, path string) bool // see local.Foreign
}

// Network returns the manifest of another CNI plugin.
func (m Manifests) Network(plugin string) UserManifest {
	return UserManifest{m, "cniPlugin", addon.Where(plugin), NetworkFile}
}

// Addon returns the manifest of an addon.
func (m Manifests) Addon(name string) UserManifest {
	from := addon.Where(name)
	return UserManifest{m, "addons", from, AddonsDir + "/" + addon.Hash(from) + ".yaml"}
}

// UserManifest is a YAML file of the user, given by path or URL. A copy of it is
// saved once it was applied, because a second run must not depend on the
// user's file or on the internet. The first line of the copy is its origin.
type UserManifest struct {
	all        Manifests
	field      string // of the settings
	from, kept string
}

// text returns the manifest: the saved copy of a download, and otherwise the
// user's file, or the saved copy if that cannot be read.
func (m UserManifest) text(ctx context.Context) ([]byte, error) {
	kept, err := m.all.files.Read(m.kept)
	isKept := err == nil && bytes.HasPrefix(kept, m.origin())
	if isKept && extension.IsURL(m.from) {
		return kept, nil
	}
	data, err := m.fetch(ctx)
	if err != nil && isKept {
		return kept, nil
	}
	return append(m.origin(), data...), err
}

func (m UserManifest) fetch(ctx context.Context) ([]byte, error) {
	if !extension.IsURL(m.from) {
		if m.all.foreign(m.field, m.from) {
			return nil, local.ForeignError(m.field, m.from)
		}
		return os.ReadFile(m.from)
	}
	return m.all.downloads.Get(step.WithLimit(ctx, m.all.limit), m.from)
}

func (m UserManifest) origin() []byte { return []byte("# from " + m.from + "\n") }

// Check returns an error if the manifest cannot be applied.
func (m UserManifest) Check(ctx context.Context) error {
	data, err := m.text(ctx)
	if err != nil {
		return err
	}
	return addon.CheckManifest(data)
}

func (m UserManifest) keep(ctx context.Context) error {
	data, err := m.text(ctx)
	if err != nil {
		return err
	}
	return m.all.files.Put([]host.File{{Path: m.kept, Data: data}})
}

// apply returns the step that applies a manifest and saves a copy
// once the API server has accepted it. Undo only removes the copy, because
// the objects disappear with the cluster.
func (a Addons) apply(id step.ID, name string, m UserManifest) step.Step {
	within := func(ctx context.Context) step.Step {
		return a.ApplyManifest(id, name, func() ([]byte, error) { return m.text(ctx) })
	}
	return step.Step{
		ID: id, Name: name,
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) { return within(ctx).Check(ctx) },
		Apply: func(ctx context.Context) error {
			if err := within(ctx).Apply(ctx); err != nil {
				return err
			}
			return m.keep(ctx)
		},
		Undo: func(context.Context) error { return m.all.files.Drop(m.kept) },
	}
}
