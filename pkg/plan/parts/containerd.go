package parts

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Containerd returns the containerd that runs the pods.
func Containerd(h *local.Host) containerd.Socket { return containerd.Socket(h.CRISocket()) }

// CRI returns the configuration of containerd's CRI.
func CRI(h *local.Host) containerd.CRI {
	return containerd.CRI{
		Pods: Pods(h), Units: h.Units,
		SandboxImage: h.Image("pause"), KeepImages: h.Config.KeepImages,
		Registry: h.Registry != nil || len(h.Config.RegistryMirrors) > 0,
	}
}

// Pods returns the pods of this host.
func Pods(h *local.Host) containerd.Pods {
	return containerd.Pods{Files: h.Files, Socket: Containerd(h), Images: h.ImagesIn(image.Containerd)}
}

// StaticPod returns the static pod of a component of the control plane.
func StaticPod(h *local.Host, component string) containerd.StaticPod {
	return containerd.StaticPod{Files: h.Files, Socket: Containerd(h), Name: component + "-" + h.Config.HostName}
}

// Proxy returns the kube-proxy of this host.
func Proxy(h *local.Host) containerd.Proxy {
	return containerd.Proxy{Files: h.Files, Socket: Containerd(h)}
}

// OtherCNI is the step that leaves the pod network to another CNI plugin, or an empty
// step if pods are attached to docker0.
func OtherCNI(h *local.Host) step.Step {
	within := h.Config.FlannelNetwork.IPv4()
	return containerd.LeaveCNI(h.Files, Containerd(h), within).If(!h.OwnNetwork() || h.Saved.Lost != nil)
}

// CNI is the step that writes the CNI configuration.
func CNI(h *local.Host) step.Step { return containerd.WriteCNI(h.Files, lease(h)) }

// KeepPods is the step that removes pods with addresses of an earlier subnet.
func KeepPods(h *local.Host) step.Step {
	return containerd.FollowLease(h.Files, Containerd(h), lease(h))
}
