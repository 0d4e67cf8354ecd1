// Package catalog states which versions of the components belong to each minor
// version of Kubernetes.
package catalog

import (
	"fmt"
	"slices"
)

// Minor lists the component versions for one minor version of Kubernetes. They
// are the versions that kubeadm of that release uses, whether the images are
// built or pulled. etcd is an exception: kubeadm gives no host but control planes
// access to it, and uses releases that do not enforce the rights of users.
type Minor struct {
	Number  int
	Patch   string // the newest release that can be built and pulled
	Etcd    string // the newest patch, see etcdRights
	CoreDNS string
	Pause   string
	CNI     string
	Flannel string

	// Of addons.
	MetricsServer string
	LocalPath     string
	MetalLB       string

	// Containerd is the oldest containerd release whose CRI this Kubernetes
	// version supports. From Kubernetes 1.38 on, that is 2.0.0: the kubelet
	// then reads the cgroup driver from the CRI, and no longer from its own
	// configuration.
	// https://github.com/kubernetes/kubernetes/blob/v1.37.2/cmd/kubelet/app/server.go#L1476-L1480
	Containerd string

	// KubeletAdded are the fields of the KubeletConfiguration that this version
	// introduced.
	KubeletAdded []string
}

// minors has one row per supported minor version, without gaps, oldest first.
// The last row is the default.
var minors = []Minor{
	{
		Number: 34, Patch: "v1.34.4", Etcd: "3.6.16", CoreDNS: "1.14.2", Pause: "3.10.1", CNI: "1.9.1",
		Flannel:       "0.28.10",
		MetricsServer: "0.9.0", LocalPath: "0.0.30", MetalLB: "0.16.2",
		Containerd: "1.7.0",
	},
	{
		Number: 35, Patch: "v1.35.4", Etcd: "3.6.16", CoreDNS: "1.14.2", Pause: "3.10.1", CNI: "1.9.1",
		Flannel:       "0.28.10",
		MetricsServer: "0.9.0", LocalPath: "0.0.30", MetalLB: "0.16.2",
		Containerd: "1.7.0",
	},
	{
		Number: 36, Patch: "v1.36.3", Etcd: "3.6.16", CoreDNS: "1.14.2", Pause: "3.10.2", CNI: "1.9.1",
		Flannel:       "0.28.10",
		MetricsServer: "0.9.0", LocalPath: "0.0.30", MetalLB: "0.16.2",
		Containerd: "1.7.0", KubeletAdded: []string{"memoryReservationPolicy", "tlsCurvePreferences"},
	},
	{
		Number: 37, Patch: "v1.37.2", Etcd: "3.7.3", CoreDNS: "1.14.6", Pause: "3.10.2", CNI: "1.9.1",
		Flannel:       "0.28.10",
		MetricsServer: "0.9.0", LocalPath: "0.0.30", MetalLB: "0.16.2",
		Containerd: "1.7.0", KubeletAdded: []string{"defaultPodSysctls"},
	},
}

// Minors returns all supported minor versions, oldest first.
func Minors() []Minor { return slices.Clone(minors) }

// Newest returns the default minor version.
func Newest() Minor { return minors[len(minors)-1] }

// Find returns the row of a minor version by its number, 36 for 1.36.
func Find(number int) (Minor, bool) {
	i := slices.IndexFunc(minors, func(m Minor) bool { return m.Number == number })
	if i < 0 {
		return Minor{}, false
	}
	return minors[i], true
}

// Supported returns the range of supported versions: "1.34 to 1.37".
func Supported() string { return minors[0].String() + " to " + Newest().String() }

// String returns the minor version as users write it: "1.37".
func (m Minor) String() string { return fmt.Sprintf("1.%d", m.Number) }

// CheckKubeletField returns an error if the kubelet of a release does not know
// a field of the KubeletConfiguration: the kubelet itself would only log that
// it ignores the field. An invalid release is not an error here, because
// another check reports it.
func CheckKubeletField(release, field string) error {
	_, m, err := Kubernetes(release)
	if err != nil {
		return nil
	}
	for _, other := range minors {
		if other.Number > m.Number && slices.Contains(other.KubeletAdded, field) {
			return fmt.Errorf("%s needs Kubernetes %s or newer, and the version is %s", field, other, release)
		}
	}
	return nil
}
