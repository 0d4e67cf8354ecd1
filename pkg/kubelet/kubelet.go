// Package kubelet runs the kubelet of a host as a container in the main Docker
// and remembers what it changes on the host.
//
//	Kubelet                        configures and starts it
//	 ├── Identity                  its certificate and kubeconfig
//	 └── Configuration             config.yaml
//	Container                      the container that runs: why it fails, since when it runs
//	ServiceRoute, RememberSysctls  the host's routes and kernel settings
package kubelet

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Paths on the host.
const (
	Dir             = "/var/lib/kubelet"
	Kubeconfig      = "/etc/kubernetes/kubelet.conf"
	BootstrapConfig = "/etc/kubernetes/bootstrap-kubelet.conf" // a token, until there is a certificate
	configFile      = Dir + "/config.yaml"
	resolvFile      = Dir + "/resolv.conf"
	pkiDir          = Dir + "/pki"
	currentPair     = pkiDir + "/kubelet-client-current.pem" // the kubelet renews what this link names
	firstPair       = pkiDir + "/kubelet-client-first.pem"
	clientCA        = "/etc/kubernetes/pki/ca.crt"
	manifestDir     = "/etc/kubernetes/manifests"
)

// Port is the port of the kubelet's API, the default of the kubelet.
const Port = 10250

// Kubelet configures and starts the kubelet of this host.
type Kubelet struct {
	Identity
	Config        Configuration
	Docker        func() *docker.Engine // the main one
	Image         string                // of hyperkube
	Store         string                // the directory of containerd, whose images the kubelet measures
	NodeIP        netip.Addr
	RestartPolicy string // "unless-stopped"
	ExtraArgs     config.Arguments
}

// VolumesDir contains the volumes of the addon local-path. The kubelet needs it
// too: it resolves the subPath of a volume mount itself.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubelet/kubelet_pods.go#L349-L379
const VolumesDir = host.StateDir + "/volumes"

// directories are mounted at the same path as on the host, because the kubelet passes
// these paths to the container runtime.
var directories = []string{
	"/etc/kubernetes", Dir, "/var/log/pods", "/var/log/containers",
	"/var/lib/containerd", "/var/lib/cni", "/etc/cni", "/opt/cni", VolumesDir,
}

// mounted returns directories, and Store if it is another one.
func (k Kubelet) mounted() []string {
	if k.Store == "" || slices.Contains(directories, k.Store) {
		return directories
	}
	return append(slices.Clone(directories), k.Store)
}

func (k Kubelet) service() Instance {
	return Instance{docker.ManagedContainer{Docker: k.Docker, Name: container, Container: k.container}}
}

func (k Kubelet) container() (docker.Container, error) {
	reads, err := k.reads()
	if err != nil {
		return docker.Container{}, err
	}
	return docker.Container{
		Name: container, Image: k.Image, Command: k.command(),
		Env:    []string{"KUBE_BOOTSTRAP_READS=" + reads},
		Mounts: mounts(k.Files, k.mounted()), Privileged: true, HostPID: true, Restart: k.RestartPolicy,
	}, nil
}

func (k Kubelet) command() []string {
	command := []string{
		"kubelet", "--config=" + configFile, "--kubeconfig=" + Kubeconfig,
		"--hostname-override=" + k.HostName, "--node-ip=" + k.NodeIP.String(),
	}
	if !k.ControlPlane {
		command = append(command, "--bootstrap-kubeconfig="+BootstrapConfig)
	}
	if len(k.Config.Node.Labels) > 0 {
		command = append(command, "--node-labels="+config.Joined(k.Config.Node.Labels))
	}
	return k.ExtraArgs.Over(command)
}

func mounts(files host.Files, dirs []string) []docker.Mount {
	mounts := []docker.Mount{
		{Source: "/run", Target: "/run"}, {Source: "/sys", Target: "/sys"}, {Source: "/dev", Target: "/dev"},
		{Source: "/etc", Target: hostEtc, ReadOnly: true},
	}
	for _, dir := range dirs {
		mounts = append(mounts, docker.Mount{Source: dir, Target: dir, Shared: dir == Dir})
	}
	for _, path := range []string{"/lib/modules", "/etc/machine-id", "/etc/os-release"} {
		if files.Exists(path) {
			mounts = append(mounts, docker.Mount{Source: path, Target: path, ReadOnly: true})
		}
	}
	return mounts
}

// reads changes with what the kubelet reads only when it starts.
func (k Kubelet) reads() (string, error) {
	path, _ := resolv(k.Files)
	config, err := k.Config.encode(path, k.ControlPlane)
	sum := sha256.Sum256(slices.Concat(config, []byte(k.Server), trusted(k.Files)))
	return hex.EncodeToString(sum[:8]), err
}
