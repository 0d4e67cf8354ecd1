package upgrade

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
)

// Node is a node of the cluster, its role, and the version of its kubelet.
type Node struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Kubelet string `json:"kubelet"`
}

// The roles of nodes.
const (
	controlPlane = "control plane"
	worker       = "worker"
)

// NodeOf returns a node of the API.
func NodeOf(n corev1.Node) Node {
	role := worker
	if _, ok := n.Labels[node.ControlPlaneLabel]; ok {
		role = controlPlane
	}
	return Node{Name: n.Name, Role: role, Kubelet: n.Status.NodeInfo.KubeletVersion}
}

// Worker reports whether the node is no control plane.
func (n Node) Worker() bool { return n.Role == worker }

// Step is a command on a node, and what it changes there.
type Step struct {
	Node    string `json:"node"`
	Command string `json:"command"`
	Changes string `json:"changes"`
}

// Steps returns the commands of an upgrade in their order: control planes come before workers.
func Steps(nodes []Node, from, to image.Versions) (all []Step) {
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Role, b.Role) })
	for _, n := range nodes {
		all = append(all, Step{n.Name, "upgrade apply", applied(n, from, to)})
	}
	for _, n := range nodes {
		all = append(all, Step{n.Name, "upgrade finish", finished(n, from, to)})
	}
	return all
}

func applied(n Node, from, to image.Versions) string {
	text := "load the images of " + to.Kubernetes
	if n.Worker() {
		return text
	}
	return fmt.Sprintf("%s; run its API server, controller manager and scheduler, which emulate %s", text,
		Minor(from.Kubernetes))
}

func finished(n Node, from, to image.Versions) string {
	text := "install the kubelet"
	if n.Kubelet != to.Kubernetes {
		text += " " + to.Kubernetes
	}
	if n.Worker() {
		return text
	}
	if from.Etcd != to.Etcd {
		text = fmt.Sprintf("change etcd from %s to %s; %s", from.Etcd, to.Etcd, text)
	}
	return "end the emulation; " + text + " and the addons"
}
