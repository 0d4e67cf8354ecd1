package controlplane

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"path"
	"slices"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// Where the components find their kubeconfigs.
const (
	managerConf   = Dir + "/controller-manager.conf"
	schedulerConf = Dir + "/scheduler.conf"
)

// component is one program of the control plane.
type component struct {
	name     string
	read     []string // directories and files of the host that it may read
	write    []string // directories of the host that it may write
	host     string   // address of the health endpoint
	port     int
	live     string // paths of its health
	ready    string
	cpu      string // its request; the API server has the largest, because the others wait for it
	restarts []byte // the pod must restart when this changes
}

func podPath(name string) string { return ManifestDir + "/" + name + ".yaml" }

func (s StaticPods) apiserver(reads []host.File) component {
	restarts := slices.Concat(content(s.Files, accountPublic), content(s.Files, accountKey), trusted(s.Files, EtcdCA),
		trusted(s.Files, kubeletCA))
	for _, file := range reads {
		restarts = append(restarts, file.Data...)
	}
	return component{
		name: "kube-apiserver",
		read: []string{PKIDir, ConfigDir}, write: []string{auditDir},
		host: s.IP, port: s.APIPort, live: "/livez", ready: "/readyz", cpu: "150m",
		restarts: restarts,
	}
}

// The ports on 127.0.0.1 of the controller manager and of the scheduler, their defaults.
const (
	ManagerPort   = 10257
	SchedulerPort = 10259
)

func (s StaticPods) manager() component {
	return component{
		name: "kube-controller-manager",
		read: []string{PKIDir, managerConf},
		host: "127.0.0.1", port: ManagerPort, live: "/healthz", ready: "/healthz", cpu: "25m",
		restarts: slices.Concat(content(s.Files, managerConf), content(s.Files, accountKey)),
	}
}

func (s StaticPods) scheduler() component {
	return component{
		name: "kube-scheduler",
		read: []string{schedulerConf, schedulerDir},
		host: "127.0.0.1", port: SchedulerPort, live: "/livez", ready: "/readyz", cpu: "25m",
		restarts: content(s.Files, schedulerConf),
	}
}

//go:embed config/*.flags
var flagFiles embed.FS

var flagTemplates = template.Must(template.New("").Funcs(template.FuncMap{
	"ciphers": pki.CipherSuites, "join": strings.Join,
}).ParseFS(flagFiles, "config/*.flags"))

// flags returns the flags of a component: the lines of its template, without comments.
func (s StaticPods) flags(component string) ([]string, error) {
	var text strings.Builder
	err := flagTemplates.ExecuteTemplate(&text, component+".flags", struct {
		StaticPods
		Name string
	}{s, strings.TrimPrefix(component, "kube-")})
	return slices.DeleteFunc(strings.Split(text.String(), "\n"),
		func(line string) bool { return !strings.HasPrefix(line, "--") }), err
}

// trusted returns the certificates in the file of an authority, sorted. The API
// server must not restart when only the signer changes.
func trusted(files host.Files, path string) []byte {
	certs := blocks(content(files, path+".crt"))
	slices.Sort(certs)
	return []byte(strings.Join(certs, ""))
}

// content returns a file that an earlier step wrote; nil before that.
func content(files host.Files, path string) []byte {
	data, _ := files.Read(path)
	return data
}

// restartsKey is an annotation that changes with the files that a component reads
// only when it starts, so that the kubelet restarts the pod.
const restartsKey = "kube-bootstrap.dev/reads"

// podYAML is what the pods of all components have in common.
//
//go:embed config/pod.yaml
var podYAML []byte

func (s StaticPods) manifest(p component) ([]byte, error) {
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(podYAML, &pod); err != nil {
		return nil, err
	}
	flags, err := s.flags(p.name)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(p.restarts)
	pod.Name, pod.Annotations = p.name, map[string]string{restartsKey: hex.EncodeToString(sum[:8])}
	pod.Labels["component"], pod.Labels["app.kubernetes.io/version"] = p.name, s.KubernetesVersion
	c := &pod.Spec.Containers[0]
	c.Name, c.Image = p.name, s.Image(p.name)
	c.Command = append([]string{p.name}, s.ExtraArgs(p.name).Over(flags)...)
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(p.cpu)}
	pod.Spec.Volumes, c.VolumeMounts = p.volumes()
	for probe, urlPath := range map[*corev1.Probe]string{
		c.StartupProbe: p.live, c.ReadinessProbe: p.ready, c.LivenessProbe: p.live,
	} {
		probe.HTTPGet.Host, probe.HTTPGet.Path, probe.HTTPGet.Port = p.host, urlPath, intstr.FromInt(p.port)
	}
	return yaml.Marshal(pod)
}

// volumes have no type to check: the kubelet would look for it in its own container,
// which does not see every directory of the host. An earlier step has made them all.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/volume/hostpath/host_path.go#L247-L253
func (p component) volumes() (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	for _, hostPath := range append(p.read, p.write...) {
		name := strings.ReplaceAll(path.Base(hostPath), ".", "-")
		source := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: hostPath}}
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: source})
		mounts = append(mounts, corev1.VolumeMount{
			Name: name, MountPath: hostPath, ReadOnly: !slices.Contains(p.write, hostPath),
		})
	}
	return volumes, mounts
}
