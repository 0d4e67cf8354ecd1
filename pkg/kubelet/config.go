package kubelet

import (
	_ "embed"
	"fmt"
	"net/netip"
	"runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ControlPlaneTaint keeps ordinary pods off control planes.
const ControlPlaneTaint = "node-role.kubernetes.io/control-plane"

// Configuration is the configuration of the kubelet.
type Configuration struct {
	ClusterDNS   netip.Addr
	DNSDomain    string
	CgroupDriver string // "systemd" or "cgroupfs", as the container runtime's
	CRISocket    string // "/run/containerd/containerd.sock"
	Schedulable  bool   // the control plane accepts all pods (no taint)
	SmallDisk    bool   // the node is a container and shares its disk with other programs
	KeepOOMScore bool   // it may not be lowered on this host
	Node         NodeSettings
}

// everywhere is the part of the configuration that is the same on every host.
//
//go:embed everywhere.yaml
var everywhere []byte

// encode renders the configuration with fields that all supported versions have.
func (c Configuration) encode(resolv string, controlPlane bool) ([]byte, error) {
	var k kubeletv1.KubeletConfiguration
	if err := yaml.UnmarshalStrict(everywhere, &k); err != nil {
		return nil, err
	}
	k.TLSCipherSuites = pki.CipherSuites()
	k.Authentication.X509.ClientCAFile = clientCA
	k.ClusterDomain, k.ClusterDNS, k.ResolverConfig = c.DNSDomain, []string{c.ClusterDNS.String()}, &resolv
	k.ContainerRuntimeEndpoint, k.CgroupDriver = "unix://"+c.CRISocket, c.CgroupDriver
	// Since 1.35 the kubelet refuses the older hierarchy unless it is told.
	// https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/kubelet/apis/config/v1beta1/defaults.go#L292-L294
	k.FailCgroupV1 = new(kernel.CgroupV2())
	k.VolumePluginDir = Dir + "/volumeplugins"
	if controlPlane {
		k.StaticPodPath = manifestDir
	}
	if controlPlane && !c.Schedulable {
		k.RegisterWithTaints = []corev1.Taint{{Key: ControlPlaneTaint, Effect: corev1.TaintEffectNoSchedule}}
	}
	if c.SmallDisk {
		k.ImageGCHighThresholdPercent = new(int32(100))
		k.EvictionHard = map[string]string{
			"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%",
		}
	}
	if c.KeepOOMScore {
		// -999, the default, is not permitted here: the kubelet would fail twice and wait after each failure.
		// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/util/oom/oom_linux.go#L61-L79
		k.OOMScoreAdj = new(int32(0))
	}
	if err := c.Node.apply(&k); err != nil {
		return nil, fmt.Errorf("kubelet configuration: %w", err)
	}
	return yaml.Marshal(k)
}

// NodeSettings contains the settings that belong to one node only.
type NodeSettings struct {
	Labels             []config.Label
	Taints             []config.Taint
	CPUs, Memory, Disk resource.Quantity // what pods may use; zero: all
	Config             string            // further fields of the configuration, as JSON
}

// apply adds the fields of o to the configuration. It reserves for the system what pods
// may not use, so that the kubelet limits all pods together to the rest.
func (o NodeSettings) apply(c *kubeletv1.KubeletConfiguration) error {
	for _, t := range o.Taints {
		c.RegisterWithTaints = append(c.RegisterWithTaints, t.Taint)
	}
	for _, l := range o.limits() {
		left, err := l.left()
		if err != nil {
			return err
		}
		if left.Sign() > 0 {
			if c.SystemReserved == nil {
				c.SystemReserved = map[string]string{}
			}
			c.SystemReserved[l.resource] = left.String()
		}
	}
	if o.Config == "" {
		return nil
	}
	return yaml.UnmarshalStrict([]byte(o.Config), c)
}

// limit is one resource of which pods may use only a part.
type limit struct {
	field, resource string
	wanted          resource.Quantity
	have            func() (resource.Quantity, error)
}

func (o NodeSettings) limits() []limit {
	all := []limit{
		{"nodeCPUs", "cpu", o.CPUs, func() (resource.Quantity, error) {
			return *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI), nil
		}},
		{"nodeMemory", "memory", o.Memory, func() (resource.Quantity, error) { return inBytes(kernel.MemoryTotal()) }},
		{"nodeDisk", "ephemeral-storage", o.Disk, func() (resource.Quantity, error) {
			return inBytes(filesystem.TotalBytes(host.Files{}, Dir))
		}},
	}
	return slices.DeleteFunc(all, func(l limit) bool { return l.wanted.IsZero() })
}

func inBytes(n int64, err error) (resource.Quantity, error) {
	return *resource.NewQuantity(n, resource.BinarySI), err
}

// left returns what remains after the wanted amount is subtracted.
func (l limit) left() (resource.Quantity, error) {
	have, err := l.have()
	if err != nil {
		return have, err
	}
	have.Sub(l.wanted)
	return have, nil
}

// Problems lists the settings of the node that this host cannot satisfy.
func (o NodeSettings) Problems() error {
	return host.Each(o.limits(), func(l limit) error {
		left, err := l.left()
		if err != nil || left.Sign() >= 0 {
			return err
		}
		have, _ := l.have()
		text := fmt.Sprintf("%s: %s is more than the %s that this host has", l.field, l.wanted.String(), have.String())
		return &step.Problem{Name: "node-size", Text: text, Remedy: "give less, or leave it out"}
	})
}
