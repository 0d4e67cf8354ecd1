package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// LabelsAndTaints are the labels and taints that the settings request for a node.
type LabelsAndTaints struct {
	Labels []config.Label `json:"labels,omitempty"`
	Taints []config.Taint `json:"taints,omitempty"`
	// ByKubelet means that the node's kubelet applies the labels and taints. The API server
	// allows it to change its labels, but not its taints after the
	// registration.
	ByKubelet bool `json:"-"`
}

// Label applies labels and taints to the node and removes what earlier settings
// added. The kubelet itself only applies them when it registers the
// node.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubelet/kubelet_node_status.go#L125-L139
func (n Node) Label(want LabelsAndTaints) step.Step {
	return step.Step{
		ID: "label-node", Name: "label the node",
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			node, err := n.get(ctx)
			if err != nil {
				// A node that does not exist yet lacks all labels and taints, also those of its kubelet.
				none := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
				all := LabelsAndTaints{Labels: want.Labels, Taints: want.Taints}
				return step.DiffOf(kube.NoAnswer(err), all.changes(none, all).diff...)
			}
			before, err := n.given(ctx, node, want.ByKubelet)
			if err != nil {
				return nil, kube.NoAnswer(err)
			}
			return want.changes(node, before).diff, nil
		},
		Apply: func(ctx context.Context) error {
			return kube.Await(ctx, n.watch,
				func(o runtime.Object) error { return n.label(ctx, o.(*corev1.Node), want) }, n.Explain)
		},
	}
}

// label remembers the labels and taints before it applies them, because a run that is killed
// in between has given them as well.
func (n Node) label(ctx context.Context, node *corev1.Node, want LabelsAndTaints) error {
	before, err := n.given(ctx, node, want.ByKubelet)
	if err != nil {
		return err
	}
	changes := want.changes(node, before)
	if len(changes.diff) == 0 {
		return nil
	}
	if want.ByKubelet {
		return n.patch(ctx, changes.patch())
	}
	if err := n.remember(ctx, node, before.and(want)); err != nil {
		return err
	}
	if err := n.patch(ctx, changes.patch()); err != nil {
		return err
	}
	return n.remember(ctx, node, want)
}

type changes struct {
	diff       step.Diff
	labels     map[string]*string // nil: remove the label
	taints     []corev1.Taint
	annotation string
	version    string // resource version of the node; empty if the taints do not change
}

// changes compares the node with the labels and taints, and with the labels and taints of earlier settings.
func (m LabelsAndTaints) changes(node *corev1.Node, before LabelsAndTaints) changes {
	c := changes{labels: map[string]*string{}, taints: node.Spec.Taints}
	c.label(node, before.Labels, m.Labels)
	if !m.ByKubelet {
		c.taint(node, before.Taints, m.Taints)
	}
	if text(m) == text(before) {
		return c
	}
	c.diff = append(c.diff, "remember the labels and taints of the settings of node "+node.Name)
	if m.ByKubelet {
		c.annotation = text(m)
	}
	return c
}

func text(of any) string {
	data, err := json.Marshal(of)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(data)
}

func (c *changes) label(node *corev1.Node, before, want []config.Label) {
	for _, l := range want {
		if is, there := node.Labels[l.Key]; !there || is != l.Value {
			c.labels[l.Key] = &l.Value
			c.diff = append(c.diff, fmt.Sprintf("label node %s: %s", node.Name, l))
		}
	}
	for _, l := range before {
		wanted := slices.ContainsFunc(want, func(w config.Label) bool { return w.Key == l.Key })
		if is, there := node.Labels[l.Key]; there && is == l.Value && !wanted {
			c.labels[l.Key] = nil
			c.diff = append(c.diff, fmt.Sprintf("remove label %s from node %s", l, node.Name))
		}
	}
}

func (c *changes) taint(node *corev1.Node, before, want []config.Taint) {
	add, remove := TaintChanges(node.Spec.Taints, before, want)
	if len(add)+len(remove) == 0 {
		return
	}
	c.version = node.ResourceVersion // controllers may change the list of taints at the same time
	c.taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
		same := func(other config.Taint) bool { return t.MatchTaint(&other.Taint) }
		return slices.ContainsFunc(add, same) || slices.ContainsFunc(remove, same)
	})
	for _, t := range add {
		c.taints = append(c.taints, t.Taint)
		c.diff = append(c.diff, fmt.Sprintf("taint node %s: %s", node.Name, t))
	}
	for _, t := range remove {
		c.diff = append(c.diff, fmt.Sprintf("remove taint %s from node %s", t, node.Name))
	}
}

// Taints returns the taints of the node; known is false if the node does not
// exist, or if there are no credentials yet.
func (n Node) Taints(ctx context.Context) (taints []corev1.Taint, known bool, err error) {
	node, err := n.get(ctx)
	if apierrors.IsNotFound(err) || errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("taints of node %s: %w", n.Name, err)
	}
	return node.Spec.Taints, true, nil
}

// TaintChanges returns the taints of want that a node lacks, and the node's
// taints of before that are no longer wanted.
func TaintChanges(node []corev1.Taint, before, want []config.Taint) (add, remove []config.Taint) {
	has := func(taint config.Taint) bool {
		return slices.ContainsFunc(node,
			func(t corev1.Taint) bool { return t.MatchTaint(&taint.Taint) && t.Value == taint.Value })
	}
	for _, t := range want {
		if !has(t) {
			add = append(add, t)
		}
	}
	for _, t := range before {
		wanted := slices.ContainsFunc(want, func(w config.Taint) bool { return w.MatchTaint(&t.Taint) })
		if !wanted && has(t) {
			remove = append(remove, t)
		}
	}
	return add, remove
}

func (c changes) patch() string {
	metadata := map[string]any{}
	if len(c.labels) > 0 {
		metadata["labels"] = c.labels
	}
	if c.annotation != "" {
		metadata["annotations"] = map[string]string{labelsAnnotation: c.annotation}
	}
	all := map[string]any{"metadata": metadata}
	if c.version != "" {
		metadata["resourceVersion"] = c.version
		all["spec"] = map[string]any{"taints": c.taints}
	}
	return text(all)
}

// Labels and taints that the settings of a host did not give to its node belong to
// users and controllers, and stay. A worker remembers what it
// gave in an annotation of its node. A control plane must not trust that: with
// its rights, a kubelet could remove a taint of an administrator. It remembers
// in a ConfigMap, which no kubelet can write.
const (
	labelsAnnotation = "kube-bootstrap.dev/marks"
	labelsConfigMap  = "kube-bootstrap-marks" // in kube-system, a key per node
)

type given struct {
	UID             types.UID `json:"uid"` // of the node: another node of this name was given nothing
	LabelsAndTaints `json:",inline"`
}

func (n Node) given(ctx context.Context, node *corev1.Node, own bool) (LabelsAndTaints, error) {
	var before LabelsAndTaints
	if own {
		// missing or invalid: there is nothing to remove
		_ = json.Unmarshal([]byte(node.Annotations[labelsAnnotation]), &before)
		return before, nil
	}
	client, err := n.API.Client()
	if err != nil {
		return before, err
	}
	all, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, labelsConfigMap, metav1.GetOptions{})
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
		before = g.LabelsAndTaints
	}
	return before, err
}

func (n Node) remember(ctx context.Context, node *corev1.Node, want LabelsAndTaints) error {
	data := map[string]string{n.Name: text(given{node.UID, want})}
	patch := []byte(text(map[string]any{"data": data}))
	client, err := n.API.Client()
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	_, err = maps.Patch(ctx, labelsConfigMap, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: kube.FieldManager})
	if apierrors.IsNotFound(err) {
		first := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: labelsConfigMap}, Data: data}
		_, err = maps.Create(ctx, first, metav1.CreateOptions{FieldManager: kube.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("remember the labels and taints of node %s: %w", n.Name, err)
	}
	return nil
}

func (m LabelsAndTaints) and(other LabelsAndTaints) LabelsAndTaints {
	return LabelsAndTaints{Labels: union(m.Labels, other.Labels), Taints: union(m.Taints, other.Taints)}
}

// union returns the values of two lists, in the order of their texts.
func union[T interface {
	comparable
	fmt.Stringer
}](a, b []T) []T {
	return slices.Compact(slices.SortedFunc(slices.Values(slices.Concat(a, b)), func(x, y T) int {
		return strings.Compare(x.String(), y.String())
	}))
}
