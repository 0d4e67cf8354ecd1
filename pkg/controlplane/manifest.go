package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// restartsKey is an annotation that changes with the files that a component reads
// only when it starts, so that the kubelet restarts the pod.
const restartsKey = "kube-bootstrap.dev/reads"

func (s StaticPods) manifest(p component) ([]byte, error) {
	sum := sha256.Sum256(p.restarts)
	return yaml.Marshal(corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: p.name, Namespace: metav1.NamespaceSystem,
			Labels:      map[string]string{"component": p.name, "tier": "control-plane", "app.kubernetes.io/version": s.KubernetesVersion},
			Annotations: map[string]string{restartsKey: hex.EncodeToString(sum[:8])},
		},
		Spec: corev1.PodSpec{
			HostNetwork:       true,
			PriorityClassName: "system-node-critical",
			SecurityContext: &corev1.PodSecurityContext{
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{s.container(p)},
			Volumes:    p.volumes(),
		},
	})
}

func (s StaticPods) container(p component) corev1.Container {

	return corev1.Container{
		Name:            p.name,
		Image:           s.Image(p.name),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         append([]string{p.name}, s.ExtraArgs(p.name).Over(p.args)...),
		Resources:       corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(p.cpu)}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		StartupProbe:   p.probe(p.live, 1, 300),
		ReadinessProbe: p.probe(p.ready, 3, 3),
		LivenessProbe:  p.probe(p.live, 10, 8),
		VolumeMounts:   p.mounts(),
	}
}

func (p component) probe(urlPath string, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Host: p.host, Path: urlPath, Port: intstr.FromInt(p.port), Scheme: corev1.URISchemeHTTPS,
		}},
		PeriodSeconds: period, FailureThreshold: failures, TimeoutSeconds: 15,
	}
}

// volumes have no type to check: the kubelet would look for it in its own container,
// which does not see every directory of the host. An earlier step has made them all.
func (p component) volumes() (all []corev1.Volume) {
	for _, hostPath := range append(p.read, p.write...) {
		all = append(all, corev1.Volume{
			Name:         volumeName(hostPath),
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: hostPath}},
		})
	}
	return all
}

func (p component) mounts() (all []corev1.VolumeMount) {
	for _, hostPath := range append(p.read, p.write...) {
		all = append(all, corev1.VolumeMount{Name: volumeName(hostPath), MountPath: hostPath, ReadOnly: !slices.Contains(p.write, hostPath)})
	}
	return all
}

func volumeName(hostPath string) string {
	return strings.TrimSuffix(path.Base(hostPath), path.Ext(hostPath))
}
