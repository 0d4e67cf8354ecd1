package kubelet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// ControlPlaneTaint keeps ordinary pods off control planes.
const ControlPlaneTaint = "node-role.kubernetes.io/control-plane"

// Configuration is the configuration of the kubelet.
type Configuration struct {
	ClusterDNS, DNSDomain string
	CgroupDriver          string // "systemd" or "cgroupfs", as the container runtime's
	CRISocket             string // "/run/containerd/containerd.sock"
	Schedulable           bool   // a control plane that takes everyone's pods: no taint
	SmallDisk             bool   // a node inside of a container: it shares a disk that others fill
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
		c.runControlPlane(&k)
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
	data, err := yaml.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("kubelet configuration: %w", err)
	}
	return data, nil
}

// After a partition the node turns Ready at the next update of its status, and a
// request on a dead connection ends after the same time (the kubelet's default is
// 10 s). An unchanged status is reported at the default interval.
const (
	statusUpdates = 5 * time.Second
	statusReports = 5 * time.Minute
)

// podPidsLimit lets no pod use up the processes of its host.
const podPidsLimit = 4096

// secure accepts only requests that the API server authenticates and authorizes,
// and confines pods that do not confine themselves.
func secure(k *kubeletv1.KubeletConfiguration) {
	k.SeccompDefault = new(true)
	k.PodPidsLimit = new(int64(podPidsLimit))
	k.Authentication = kubeletv1.KubeletAuthentication{
		X509:      kubeletv1.KubeletX509Authentication{ClientCAFile: clientCA},
		Webhook:   kubeletv1.KubeletWebhookAuthentication{Enabled: new(true)},
		Anonymous: kubeletv1.KubeletAnonymousAuthentication{Enabled: new(false)},
	}
	k.Authorization.Mode = kubeletv1.KubeletAuthorizationModeWebhook
}

func (c Configuration) runControlPlane(k *kubeletv1.KubeletConfiguration) {
	k.StaticPodPath = manifestDir
	if !c.Schedulable {
		k.RegisterWithTaints = []corev1.Taint{{Key: ControlPlaneTaint, Effect: corev1.TaintEffectNoSchedule}}
	}
}
