package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// NodeStatus is a node as the API server reports it.
type NodeStatus struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Version string `json:"version"` // of its kubelet
	Address string `json:"address"`

	ControlPlane bool `json:"-"`
}

// Status returns "Ready" or "NotReady" as kubectl prints it; "" for the zero Node.
func (n NodeStatus) Status() string {
	switch {
	case n.Name == "":
		return ""
	case n.Ready:
		return "Ready"
	}
	return "NotReady"
}

// Nodes returns the nodes of a cluster as its API server reports them.
func Nodes(ctx context.Context, options session.Selection) ([]NodeStatus, error) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	return session.Get(ctx, options, session.Requirements{},
		func(s *session.Session, _ topology.State) ([]NodeStatus, error) {
			return List(ctx, Connect(ctx, s, ""))
		})
}

// NodeNames returns the names of the nodes that the API server has.
func NodeNames(ctx context.Context, s *session.Session) (names []string, err error) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	found, err := List(ctx, Connect(ctx, s, ""))
	for _, n := range found {
		names = append(names, n.Name)
	}
	return names, err
}

// List returns the nodes that an API server reports.
func List(ctx context.Context, api kube.Connect) (all []NodeStatus, err error) {
	client, err := api.Client()
	if err != nil {
		return nil, err
	}
	found, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	for _, n := range found.Items {
		all = append(all, NodeOf(n))
	}
	slices.SortFunc(all, func(a, b NodeStatus) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// NodeOf converts a node object.
func NodeOf(n corev1.Node) NodeStatus {
	_, controlPlane := n.Labels[node.ControlPlaneLabel]
	is := NodeStatus{Name: n.Name, Version: n.Status.NodeInfo.KubeletVersion, ControlPlane: controlPlane}
	for _, c := range n.Status.Conditions {
		is.Ready = is.Ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			is.Address = a.Address
		}
	}
	return is
}

// PodReady returns an error unless the pod is Ready.
func PodReady(p corev1.Pod) error {
	if !kube.PodReady(p) {
		return errors.New("pod " + p.Name + " is not Ready")
	}
	return nil
}
