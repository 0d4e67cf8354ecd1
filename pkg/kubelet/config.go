package kubelet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// ControlPlaneTaint keeps ordinary pods off control planes.
const ControlPlaneTaint = "node-role.kubernetes.io/control-plane"

// config renders the kubelet's configuration with fields that all supported
// versions have.
func (k Kubelet) config(resolv string) ([]byte, error) {
	c := kubeletv1.KubeletConfiguration{
		TypeMeta:                 metav1.TypeMeta{APIVersion: kubeletv1.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
		RotateCertificates:       true,
		ServerTLSBootstrap:       true,
		TLSMinVersion:            "VersionTLS12",
		TLSCipherSuites:          pki.CipherSuites(),
		ReadOnlyPort:             0,
		HealthzBindAddress:       "127.0.0.1",
		EnableProfilingHandler:   new(false),
		ClusterDomain:            k.DNSDomain,
		ClusterDNS:               []string{k.ClusterDNS},
		ResolverConfig:           &resolv,
		ContainerRuntimeEndpoint: "unix://" + k.CRISocket,
		CgroupDriver:             k.CgroupDriver,
		CgroupsPerQOS:            new(true),
		// Since 1.35 the kubelet refuses the older hierarchy unless it is told.
		FailCgroupV1:              new(host.CgroupV2()),
		FailSwapOn:                &k.FailSwapOn,
		SerializeImagePulls:       new(false),
		NodeStatusUpdateFrequency: metav1.Duration{Duration: statusUpdates},
		NodeStatusReportFrequency: metav1.Duration{Duration: statusReports},
		// The default limits delay the pods of the first minute of a node.
		KubeAPIQPS:      new(int32(50)),
		KubeAPIBurst:    100,
		VolumePluginDir: Dir + "/volumeplugins",
	}
	k.secure(&c)
	if k.ControlPlane {
		k.runControlPlane(&c)
	}
	if k.SmallDisk {
		c.ImageGCHighThresholdPercent = new(int32(100))
		c.EvictionHard = map[string]string{"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%"}
	}
	if k.KeepOOMScore {
		c.OOMScoreAdj = new(int32(0)) // else it tries in vain, twice, and pauses each time
	}
	if err := k.Own.apply(&c); err != nil {
		return nil, fmt.Errorf("kubelet configuration: %w", err)
	}
	data, err := yaml.Marshal(c)
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
func (k Kubelet) secure(c *kubeletv1.KubeletConfiguration) {
	c.SeccompDefault = new(true)
	c.PodPidsLimit = new(int64(podPidsLimit))
	c.Authentication = kubeletv1.KubeletAuthentication{
		X509:      kubeletv1.KubeletX509Authentication{ClientCAFile: clientCA},
		Webhook:   kubeletv1.KubeletWebhookAuthentication{Enabled: new(true)},
		Anonymous: kubeletv1.KubeletAnonymousAuthentication{Enabled: new(false)},
	}
	c.Authorization.Mode = kubeletv1.KubeletAuthorizationModeWebhook
}

func (k Kubelet) runControlPlane(c *kubeletv1.KubeletConfiguration) {
	c.StaticPodPath = manifestDir
	if !k.Schedulable {
		c.RegisterWithTaints = []corev1.Taint{{Key: ControlPlaneTaint, Effect: corev1.TaintEffectNoSchedule}}
	}
}
