package addon

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// metallbAddresses is the manifest of the addresses that MetalLB assigns.
const metallbAddresses = "metallb-addresses.yaml"

// customKind describes a CustomResourceDefinition of MetalLB. The last version is
// the storage version.
type customKind struct {
	Plural, Kind string
	Versions     []string
}

// BGPKinds are the kinds that the programs of MetalLB watch, and whose objects this
// addon refuses, because it announces addresses by ARP and NDP only.
func (Settings) BGPKinds() []customKind {
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
func (a Addons) RemoveAddresses() step.Step {
	return a.remove("remove the addresses of addon metallb", func() ([]byte, error) { return a.render(metallbAddresses) })
}
