package controlplane

import (
	"crypto/sha256"
	_ "embed" // what all pods have in common
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
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
	args     []string
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
	restarts := slices.Concat(content(s.Files, accountPublic), content(s.Files, accountKey), trusted(s.Files, EtcdCA), trusted(s.Files, kubeletCA))
	for _, file := range reads {
		restarts = append(restarts, file.Data...)
	}
	return component{
		name: "kube-apiserver", args: s.apiserverArgs(),
		read: []string{PKIDir, ConfigDir}, write: []string{auditDir},
		host: s.IP, port: s.APIPort, live: "/livez", ready: "/readyz", cpu: "150m",
		restarts: restarts,
	}
}

func (s StaticPods) apiserverArgs() []string {
	return []string{
		"--advertise-address=" + s.IP,
		fmt.Sprintf("--secure-port=%d", s.APIPort),
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + s.ServiceCIDR.String(),

		"--authentication-config=" + authenticationFile,
		"--authorization-config=" + authorizationFile,
		"--client-ca-file=" + ClusterCA + ".crt",
		"--enable-bootstrap-token-auth=true",
		"--enable-admission-plugins=NodeRestriction,EventRateLimit,DenyServiceExternalIPs",
		"--admission-control-config-file=" + admissionFile,
		"--encryption-provider-config=" + encryptionFile,

		"--tls-cert-file=" + apiserver + ".crt",
		"--tls-private-key-file=" + apiserver + ".key",
		"--tls-min-version=VersionTLS12",
		"--tls-cipher-suites=" + strings.Join(pki.CipherSuites(), ","),
		"--profiling=false",
		// Without it, a terminating API server waits for its watches until it is killed.
		"--shutdown-send-retry-after=true",
		// A terminating API server is not ready at once, and answers until the balancers
		// have noticed, which probe it every second. The remaining time is for TLS
		// handshakes that began before: they take seconds on a busy host.
		"--shutdown-delay-duration=5s",

		"--etcd-servers=" + strings.Join(s.EtcdEndpoints, ","),
		"--etcd-cafile=" + EtcdCA + ".crt",
		"--etcd-certfile=" + EtcdRoot + ".crt",
		"--etcd-keyfile=" + EtcdRoot + ".key",

		"--kubelet-certificate-authority=" + kubeletCA + ".crt",
		"--kubelet-client-certificate=" + kubeletClient + ".crt",
		"--kubelet-client-key=" + kubeletClient + ".key",
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",

		"--requestheader-client-ca-file=" + frontProxyCA + ".crt",
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + frontProxy + ".crt",
		"--proxy-client-key-file=" + frontProxy + ".key",

		"--service-account-issuer=" + s.issuer(),
		"--service-account-jwks-uri=" + s.issuer() + "/openid/v1/jwks",
		"--service-account-key-file=" + accountPublic,
		// Otherwise a pod's token is valid for a year rather than an hour.
		"--service-account-extend-token-expiration=false",
		"--service-account-signing-key-file=" + accountKey,

		"--audit-policy-file=" + auditFile,
		"--audit-log-path=" + auditDir + "/audit.log",
		"--audit-log-maxage=30",
		"--audit-log-maxbackup=10",
		"--audit-log-maxsize=100",
	}
}

// issuer is the issuer of service-account tokens, which pods reach under this name.
func (s StaticPods) issuer() string { return "https://" + serviceName + "." + s.DNSDomain }

func (s StaticPods) manager() component {
	return component{
		name: "kube-controller-manager", args: s.managerArgs(),
		read: []string{PKIDir, managerConf},
		host: "127.0.0.1", port: 10257, live: "/healthz", ready: "/healthz", cpu: "25m",
		restarts: slices.Concat(content(s.Files, managerConf), content(s.Files, accountKey)),
	}
}

func (s StaticPods) managerArgs() []string {
	// Our own flannel, not this, gives each host its part of the pod network.
	cidrs := []string{"--allocate-node-cidrs=false"}
	if s.PodCIDR.IsValid() {
		cidrs = []string{"--allocate-node-cidrs=true", "--cluster-cidr=" + s.PodCIDR.String()}
	}
	args := slices.Concat(s.clientArgs(managerConf), cidrs, signingArgs())
	if s.LeafLife != 0 { // otherwise a year, as the other certificates
		args = append(args, "--cluster-signing-duration="+s.LeafLife.String())
	}
	return append(args,
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--use-service-account-credentials=true",
		"--terminated-pod-gc-threshold=1000",
		"--root-ca-file="+ClusterCA+".crt",
		"--service-account-private-key-file="+accountKey,
		"--client-ca-file="+ClusterCA+".crt",
		"--requestheader-client-ca-file="+frontProxyCA+".crt",
	)
}

// signingArgs sets the CA for each signer. Serving certificates of kubelets have their
// own, so that none is valid for the API server, whatever names it contains.
func signingArgs() (args []string) {
	for _, s := range []struct{ signer, authority string }{
		{"kubelet-serving", kubeletCA},
		{"kubelet-client", ClusterCA},
		{"kube-apiserver-client", ClusterCA},
		{"legacy-unknown", ClusterCA},
	} {
		args = append(args,
			"--cluster-signing-"+s.signer+"-cert-file="+signingFile(s.authority),
			"--cluster-signing-"+s.signer+"-key-file="+s.authority+".key")
	}
	return args
}

func (s StaticPods) scheduler() component {
	return component{
		name: "kube-scheduler", args: s.clientArgs(schedulerConf),
		read: []string{schedulerConf},
		host: "127.0.0.1", port: 10259, live: "/livez", ready: "/readyz", cpu: "25m",
		restarts: content(s.Files, schedulerConf),
	}
}

// clientArgs are what controller manager and scheduler have in common. At the
// default rate of requests a fresh cluster takes seconds longer.
func (s StaticPods) clientArgs(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--tls-min-version=VersionTLS12",
		fmt.Sprintf("--leader-elect=%t", !s.Single),
		"--kube-api-qps=100",
		"--kube-api-burst=200",
		"--profiling=false",
	}
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
	sum := sha256.Sum256(p.restarts)
	pod.Name, pod.Annotations = p.name, map[string]string{restartsKey: hex.EncodeToString(sum[:8])}
	pod.Labels["component"], pod.Labels["app.kubernetes.io/version"] = p.name, s.KubernetesVersion
	c := &pod.Spec.Containers[0]
	c.Name, c.Image = p.name, s.Image(p.name)
	c.Command = append([]string{p.name}, s.ExtraArgs(p.name).Over(p.args)...)
	c.Env = []corev1.EnvVar{{Name: image.StartGOGC, Value: image.StartPercent}}
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(p.cpu)}
	pod.Spec.Volumes, c.VolumeMounts = p.volumes()
	for probe, urlPath := range map[*corev1.Probe]string{c.StartupProbe: p.live, c.ReadinessProbe: p.ready, c.LivenessProbe: p.live} {
		probe.HTTPGet.Host, probe.HTTPGet.Path, probe.HTTPGet.Port = p.host, urlPath, intstr.FromInt(p.port)
	}
	return yaml.Marshal(pod)
}

// volumes have no type to check: the kubelet would look for it in its own container,
// which does not see every directory of the host. An earlier step has made them all.
func (p component) volumes() (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	for _, hostPath := range append(p.read, p.write...) {
		name := strings.TrimSuffix(path.Base(hostPath), path.Ext(hostPath))
		source := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: hostPath}}
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: source})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: hostPath, ReadOnly: !slices.Contains(p.write, hostPath)})
	}
	return volumes, mounts
}
