package addon

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// label names the addon that an object belongs to.
const label = "kube-bootstrap.dev/addon"

// Contained reports whether kube-bootstrap contains an addon.
func Contained(name string) bool { return slices.Contains(extension.ContainedAddons, name) }

// Named returns the manifest of a contained addon.
func (a Applier) Named(name string) ([]byte, error) {
	settings, err := a.Values()
	if err != nil {
		return nil, err
	}
	files := []string{name + ".yaml"}
	if name == extension.AddonMetalLB && len(settings.LoadBalancerAddresses) > 0 {
		files = append(files, metallbAddresses)
	}
	return settings.render(files...)
}

// Flannel renders the manifest of flannel as a pod network in pods.
func (a Applier) Flannel() ([]byte, error) { return a.render("flannel.yaml") }

func (a Applier) render(files ...string) ([]byte, error) {
	settings, err := a.Values()
	if err != nil {
		return nil, err
	}
	return settings.render(files...)
}

// render renders templates as one YAML stream.
func (s Values) render(files ...string) ([]byte, error) {
	var out bytes.Buffer
	for _, file := range files {
		fmt.Fprintln(&out, "---")
		if err := templates.ExecuteTemplate(&out, file, s); err != nil {
			return nil, fmt.Errorf("render %s: %w", file, err)
		}
	}
	return out.Bytes(), nil
}

// ApplyNamed is the step that applies a contained addon.
func (a Applier) ApplyNamed(name string) step.Step {
	return a.ApplyManifest(step.IDOf("addon", name), "apply addon "+name, func() ([]byte, error) {
		settings, err := a.Values()
		if err == nil && len(settings.KubeletCA) == 0 {
			err = fmt.Errorf("the authority of the kubelets: %w", fs.ErrNotExist)
		}
		if err != nil {
			return nil, err
		}
		return a.Named(name)
	})
}

// RemoveNamed is the step that deletes the objects of a contained addon, unless
// volumes depend on it. It leaves an object that has lost the label of the addon.
func (a Applier) RemoveNamed(name string) step.Step {
	s := a.remove(step.IDOf("remove-addon", name), "remove addon "+name,
		func() ([]byte, error) { return a.Named(name) })
	remove := s.Apply
	s.Apply = func(ctx context.Context) error {
		if err := a.Needed(ctx, name); err != nil {
			return err
		}
		return remove(ctx)
	}
	return s
}

// remove is the step that deletes the objects that have the label of their addon.
func (a Applier) remove(id step.ID, name string, manifest func() ([]byte, error)) step.Step {
	return kube.DeleteStep(id, name, a.API, label, objectsOf(manifest))
}

const (
	provisioner   = "rancher.io/local-path"
	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// Needed returns the problem that volumes depend on an addon, or nil.
func (a Applier) Needed(ctx context.Context, name string) error {
	if name != extension.AddonLocalPath {
		return nil
	}
	client, err := a.API.Client()
	if err != nil {
		return err
	}
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(volumes.Items,
		func(v corev1.PersistentVolume) bool { return v.Annotations[provisionedBy] != provisioner })
	if len(own) == 0 {
		return nil
	}
	return &step.Problem{
		Name: "addon-data", Firm: true, Text: fmt.Sprintf("the addon %s cannot be removed: %s", name, claims(own)),
		Remedy: "keep the addon in --addons, or delete the PersistentVolumeClaims, which deletes their data",
	}
}

// claims names the first volume, and the number of the others.
func claims(volumes []corev1.PersistentVolume) string {
	text := "the data of PersistentVolume " + volumes[0].Name
	if c := volumes[0].Spec.ClaimRef; c != nil {
		text += ", of PersistentVolumeClaim " + c.Namespace + "/" + c.Name + ","
	}
	if more := len(volumes) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more depend on it", text, more)
	}
	return text + " depends on it"
}

// metallbAddresses is the manifest of the addresses that MetalLB assigns.
const metallbAddresses = "metallb-addresses.yaml"

// customKind is a CustomResourceDefinition; its last version is the storage version.
type customKind struct {
	Plural, Kind string
	Versions     []string
}

// BGPKinds are the kinds that the programs of MetalLB watch, and whose objects this
// addon refuses, because it announces addresses by ARP and NDP only.
func (Values) BGPKinds() []customKind {
	return []customKind{
		{"bfdprofiles", "BFDProfile", []string{"v1beta1"}},
		{"bgpadvertisements", "BGPAdvertisement", []string{"v1beta1"}},
		{"bgppeers", "BGPPeer", []string{"v1beta1", "v1beta2"}},
		{"communities", "Community", []string{"v1beta1"}},
		{"servicebgpstatuses", "ServiceBGPStatus", []string{"v1beta1"}},
	}
}

// Last reports whether a version is the last one.
func (k customKind) Last(version string) bool { return version == k.Versions[len(k.Versions)-1] }

// RemoveAddresses is the step that deletes the addresses of the addon metallb that
// the settings had. Objects of the user stay.
func (a Applier) RemoveAddresses() step.Step {
	return a.remove("remove-addresses", "remove the addresses of addon metallb", func() ([]byte, error) {
		return a.render(metallbAddresses)
	})
}
