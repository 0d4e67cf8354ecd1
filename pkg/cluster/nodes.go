package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Node is a node as the API server of a cluster sees it.
type Node struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Version string `json:"version"` // of its kubelet
	Address string `json:"address"`
}

// Status is the word of kubectl for it; that of no node is empty.
func (n Node) Status() string {
	switch {
	case n.Name == "":
		return ""
	case n.Ready:
		return "Ready"
	}
	return "NotReady"
}

// Nodes asks the API server of a cluster for its nodes, by the kubeconfig that
// Kubeconfig returns.
func Nodes(ctx context.Context, options Options) ([]Node, error) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	data, err := Kubeconfig(ctx, options)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	found, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var all []Node
	for _, n := range found.Items {
		all = append(all, nodeOf(n))
	}
	slices.SortFunc(all, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func nodeOf(n corev1.Node) Node {
	node := Node{Name: n.Name, Version: n.Status.NodeInfo.KubeletVersion}
	for _, c := range n.Status.Conditions {
		node.Ready = node.Ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			node.Address = a.Address
		}
	}
	return node
}
