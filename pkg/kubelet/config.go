package kubelet

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ControlPlaneTaint keeps ordinary pods off control planes.
const ControlPlaneTaint = "node-role.kubernetes.io/control-plane"

// Configuration is the configuration of the kubelet.
type Configuration struct {
	ClusterDNS, DNSDomain string
	CgroupDriver          string // "systemd" or "cgroupfs", as the container runtime's
	CRISocket             string // "/run/containerd/containerd.sock"
	Schedulable           bool   // the control plane accepts all pods (no taint)
	SmallDisk             bool   // the node is a container and shares its disk with other programs
	KeepOOMScore          bool   // it may not be lowered on this host
	Own                   Own
}

// encode renders the configuration with fields that all supported versions have.
func (c Configuration) encode(resolv string, controlPlane bool) ([]byte, error) {
	k := kubeletv1.KubeletConfiguration{
		TypeMeta:                 metav1.TypeMeta{APIVersion: kubeletv1.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
		RotateCertificates:       true,
		ServerTLSBootstrap:       true,
		TLSMinVersion:            "VersionTLS12",
		TLSCipherSuites:          pki.CipherSuites(),
		ReadOnlyPort:             0,
		HealthzBindAddress:       "127.0.0.1",
		EnableProfilingHandler:   new(false),
		ClusterDomain:            c.DNSDomain,
		ClusterDNS:               []string{c.ClusterDNS},
		ResolverConfig:           &resolv,
		ContainerRuntimeEndpoint: "unix://" + c.CRISocket,
		CgroupDriver:             c.CgroupDriver,
		CgroupsPerQOS:            new(true),
		// Since 1.35 the kubelet refuses the older hierarchy unless it is told.
		FailCgroupV1:              new(kernel.CgroupV2()),
		FailSwapOn:                new(false),
		SerializeImagePulls:       new(false),
		NodeStatusUpdateFrequency: metav1.Duration{Duration: statusUpdates},
		NodeStatusReportFrequency: metav1.Duration{Duration: statusReports},
		// The default limits delay the pods of the first minute of a node.
		KubeAPIQPS:      new(int32(50)),
		KubeAPIBurst:    100,
		VolumePluginDir: Dir + "/volumeplugins",
	}
	secure(&k)
	if controlPlane {
		k.StaticPodPath = manifestDir
	}
	if controlPlane && !c.Schedulable {
		k.RegisterWithTaints = []corev1.Taint{{Key: ControlPlaneTaint, Effect: corev1.TaintEffectNoSchedule}}
	}
	if c.SmallDisk {
		k.ImageGCHighThresholdPercent = new(int32(100))
		k.EvictionHard = map[string]string{"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%"}
	}
	if c.KeepOOMScore {
		k.OOMScoreAdj = new(int32(0)) // -999, the default, is not permitted here: the kubelet would fail twice and wait after each failure
	}
	if err := c.Own.apply(&k); err != nil {
		return nil, fmt.Errorf("kubelet configuration: %w", err)
	}
	return yaml.Marshal(k)
}

// After a partition the node turns Ready at the next update of its status, and a
// request on a dead connection ends after the same time (the kubelet's default is
// 10 s). An unchanged status is reported at the default interval.
const (
	statusUpdates = 5 * time.Second
	statusReports = 5 * time.Minute
)

// secure accepts only requests that the API server authenticates and authorizes,
// and confines pods that do not confine themselves.
func secure(k *kubeletv1.KubeletConfiguration) {
	k.SeccompDefault = new(true)
	k.PodPidsLimit = new(int64(4096)) // no pod can use up the processes of its host
	k.Authentication = kubeletv1.KubeletAuthentication{
		X509:      kubeletv1.KubeletX509Authentication{ClientCAFile: clientCA},
		Webhook:   kubeletv1.KubeletWebhookAuthentication{Enabled: new(true)},
		Anonymous: kubeletv1.KubeletAnonymousAuthentication{Enabled: new(false)},
	}
	k.Authorization.Mode = kubeletv1.KubeletAuthorizationModeWebhook
}

// Own contains the settings that belong to one node only.
type Own struct {
	Labels             []string // KEY=VALUE
	Taints             []string // KEY=VALUE:EFFECT
	CPUs, Memory, Disk string   // what pods may use; "": all
	Config             string   // further fields of the configuration, as JSON
}

// apply adds the fields of o to the configuration. It reserves for the system what pods
// may not use, so that the kubelet limits all pods together to the rest.
func (o Own) apply(c *kubeletv1.KubeletConfiguration) error {
	for _, word := range o.Taints {
		c.RegisterWithTaints = append(c.RegisterWithTaints, node.ParseTaint(word))
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
	field, resource, wanted string
	have                    func() (resource.Quantity, error)
}

func (o Own) limits() []limit {
	all := []limit{
		{"nodeCPUs", "cpu", o.CPUs, func() (resource.Quantity, error) {
			return *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI), nil
		}},
		{"nodeMemory", "memory", o.Memory, func() (resource.Quantity, error) { return inBytes(kernel.MemoryTotal()) }},
		{"nodeDisk", "ephemeral-storage", o.Disk, func() (resource.Quantity, error) { return inBytes(filesystem.TotalBytes(host.Files{}, Dir)) }},
	}
	return slices.DeleteFunc(all, func(l limit) bool { return l.wanted == "" })
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
	wanted, err := resource.ParseQuantity(l.wanted)
	have.Sub(wanted)
	return have, err
}

// Problems lists the settings of the node that this host cannot satisfy.
func (o Own) Problems() error {
	return host.Each(o.limits(), func(l limit) error {
		left, err := l.left()
		if err != nil || left.Sign() >= 0 {
			return err
		}
		have, _ := l.have()
		return &step.Problem{Name: "node-size", Text: fmt.Sprintf("%s: %s is more than the %s that this host has", l.field, l.wanted, have.String()),
			Remedy: "give less, or leave it out"}
	})
}
