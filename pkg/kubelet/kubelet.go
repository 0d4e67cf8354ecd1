// Package kubelet runs the kubelet of a host as a container in the main Docker
// and remembers what it changes on the host.
package kubelet

import (
	"context"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Where things lie on the host.
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
	container       = "kubelet"
)

// Kubelet is the kubelet of this host.
type Kubelet struct {
	Files  host.Files
	Docker func() (*docker.Engine, error) // the main one
	Image  string                         // of hyperkube

	HostName, NodeIP      string
	ClusterDNS, DNSDomain string
	CgroupDriver          string // "systemd" or "cgroupfs", as the container runtime's
	CRISocket             string // "/run/containerd/containerd.sock"
	RestartPolicy         string // "unless-stopped"

	ControlPlane bool // it runs static pods
	Schedulable  bool // a control plane that takes everyone's pods: no taint
	SmallDisk    bool // a node inside of a container: it shares a disk that others fill
	KeepOOMScore bool // it may not be lowered on this host
	FailSwapOn   bool
	Own          Own
	ExtraArgs    config.Arguments

	// Server is the URL of the API server, which the kubeconfig names.
	// Certificate issues the first certificate of a control plane's kubelet, with
	// its key, in PEM. A worker's kubelet gets its first one by the token in
	// BootstrapConfig, and another one from Certificate after a change of the
	// authority.
	Server      string
	Certificate func(context.Context) ([]byte, error)

	Now func() time.Time // the clock; nil: the host's
}

func (k Kubelet) now() time.Time {
	if k.Now != nil {
		return k.Now()
	}
	return time.Now()
}

// Ports lists the TCP ports that a host's Kubernetes components listen on,
// beside that of the API server.
func Ports(controlPlane bool) []int {
	ports := []int{10250, 10248, 10249, 10256} // kubelet and kube-proxy, with their health
	if controlPlane {
		ports = append(ports, 10257, 10259)
	}
	return ports
}

// lapsed is the problem that a worker's kubelet has no certificate with which it
// could request another one [node-certificate].
func (k Kubelet) lapsed(reason string) error {
	return &step.Problem{
		Name: "node-certificate", Firm: true, Text: currentPair + ": " + reason,
		Remedy: "run `kube-bootstrap token create --node NAME` with the name of this host, " + k.HostName + ", on a control plane, and the command that it prints here",
	}
}
