package addon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Spread is the step that evicts a CoreDNS pod if all of them are on one node
// and another node has become Ready since: Kubernetes moves no pod by itself,
// and DNS would fail with that node. The replacement is younger than the
// node's Ready condition, so the node causes at most one eviction each time
// that it becomes Ready, wherever the scheduler places the replacement.
func (a Applier) Spread() step.Step {
	return step.Step{
		ID: "spread-dns", Name: "spread CoreDNS over the nodes",
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			pod, room, err := a.crowded(ctx)
			if err != nil || pod == nil {
				return nil, err
			}
			return step.Diff{fmt.Sprintf("evict pod %s: all of CoreDNS is on node %s, and node %s has joined",
				pod.Name, pod.Spec.NodeName, room)}, nil
		},
		Apply: func(ctx context.Context) error {
			pod, _, err := a.crowded(ctx)
			if err != nil || pod == nil {
				return err
			}
			return a.evict(ctx, pod)
		},
	}
}

// crowded returns a pod to evict and the node for its replacement, or nil.
func (a Applier) crowded(ctx context.Context) (pod *corev1.Pod, room string, err error) {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	client, err := a.API.Client()
	if err != nil {
		return nil, "", err
	}
	pods, err := client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: dnsLabel})
	if err != nil {
		return nil, "", fmt.Errorf("list the pods of CoreDNS: %w", err)
	}
	if !together(pods.Items) {
		return nil, "", nil
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", fmt.Errorf("list the nodes: %w", err)
	}
	pod, room = crowd(pods.Items, nodes.Items)
	return pod, room, nil
}

// together reports whether there are several ready pods, all on one node.
func together(pods []corev1.Pod) bool {
	return len(pods) > 1 && !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		return p.Spec.NodeName != pods[0].Spec.NodeName || p.DeletionTimestamp != nil || !kube.PodReady(p)
	})
}

// crowd makes the same choice on all control planes.
func crowd(pods []corev1.Pod, nodes []corev1.Node) (*corev1.Pod, string) {
	first := slices.MinFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		if n.Name != first.Spec.NodeName && takes(n, first) && readySince(n, pods) {
			return &first, n.Name
		}
	}
	return nil, ""
}

func takes(n corev1.Node, p corev1.Pod) bool {
	return !n.Spec.Unschedulable &&
		!slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return repels(t, p.Spec.Tolerations) })
}

func repels(taint corev1.Taint, tolerations []corev1.Toleration) bool {
	return taint.Effect != corev1.TaintEffectPreferNoSchedule &&
		!slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(klog.Background(), &taint, false)
		})
}

// readySince reports whether a node is Ready and became Ready after all pods
// were created. The age of the node is not sufficient: a node that was not
// Ready when the replacement was placed would never get a pod.
func readySince(n corev1.Node, pods []corev1.Pod) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue &&
			!slices.ContainsFunc(pods,
				func(p corev1.Pod) bool { return !p.CreationTimestamp.Before(&c.LastTransitionTime) })
	})
}

// evict ignores a refusal by a disruption budget: the next run tries again.
func (a Applier) evict(ctx context.Context, pod *corev1.Pod) error {
	client, err := a.API.Client()
	if err != nil {
		return err
	}
	if err := kube.Evict(ctx, client, *pod); err != nil && !apierrors.IsTooManyRequests(err) {
		return fmt.Errorf("evict %s/%s: %w", system, pod.Name, err)
	}
	return nil
}
