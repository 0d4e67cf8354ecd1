package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

// All other labels and taints than the ones that a host's settings gave to its
// node belong to users and controllers, and stay. A worker remembers what it
// gave in an annotation of its node. A control plane must not trust that: with
// its rights, a kubelet could remove a taint of an administrator. It remembers
// in a ConfigMap, which no kubelet can write.
const (
	marksAnnotation = "kube-bootstrap.dev/marks"
	marksConfigMap  = "kube-bootstrap-marks" // in kube-system, a key per node
)

// given is the value of a key of the ConfigMap.
type given struct {
	UID   types.UID `json:"uid"` // of the node: another node of this name was given nothing
	Marks `json:",inline"`
}

// given returns the labels and taints that earlier settings gave to the node.
func (n Node) given(ctx context.Context, node *corev1.Node, own bool) (Marks, error) {
	var before Marks
	if own {
		_ = json.Unmarshal([]byte(node.Annotations[marksAnnotation]), &before) // missing or invalid: there is nothing to remove
		return before, nil
	}
	client, err := n.API.Client()
	if err != nil {
		return before, err
	}
	all, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, marksConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return before, nil
	}
	if err != nil {
		return before, fmt.Errorf("labels and taints given to node %s: %w", n.Name, err)
	}
	var g given
	if data := all.Data[n.Name]; data != "" {
		err = json.Unmarshal([]byte(data), &g)
	}
	if g.UID == node.UID {
		before = g.Marks
	}
	return before, err
}

// remember stores the labels and taints that a control plane gives to the node.
func (n Node) remember(ctx context.Context, node *corev1.Node, marks Marks) error {
	data := map[string]string{n.Name: text(given{node.UID, marks})}
	patch := []byte(text(map[string]any{"data": data}))
	client, err := n.API.Client()
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	_, err = maps.Patch(ctx, marksConfigMap, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kube.FieldManager})
	if apierrors.IsNotFound(err) {
		first := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: marksConfigMap}, Data: data}
		_, err = maps.Create(ctx, first, metav1.CreateOptions{FieldManager: kube.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("remember the labels and taints of node %s: %w", n.Name, err)
	}
	return nil
}

// and returns the labels and taints of both.
func (m Marks) and(other Marks) Marks {
	union := func(a, b []string) []string { return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b)))) }
	return Marks{Labels: union(m.Labels, other.Labels), Taints: union(m.Taints, other.Taints)}
}
