package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// cordonAnnotation is the annotation of a node that Drain cordoned. Uncordon
// affects no other node.
const cordonAnnotation = "kube-bootstrap.dev/cordoned"

// Uncordon makes a node schedulable again after Drain.
func (n Node) Uncordon() step.Step {
	return step.When(step.IDOf("uncordon", n.Name), "put node "+n.Name+" back into scheduling", "uncordon node "+n.Name,
		func(ctx context.Context) (bool, error) {
			node, err := n.get(ctx)
			return err == nil && node.Annotations[cordonAnnotation] != "", err
		}, n.uncordon)
}

func (n Node) uncordon(ctx context.Context) error {
	node, err := n.get(ctx)
	if apierrors.IsNotFound(err) || err == nil && node.Annotations[cordonAnnotation] == "" {
		return nil
	}
	if err != nil {
		return err
	}
	return n.patch(ctx, `{"metadata":{"annotations":{"`+cordonAnnotation+`":null}},"spec":{"unschedulable":null}}`)
}

// Drain holds the options of a drain.
type Drain struct {
	Limit    time.Duration // time for the pods to end
	LoseBare bool          // delete pods that no controller recreates, instead of refusing
}

// Drain cordons the node and evicts its pods. It respects disruption budgets,
// which may delay an eviction, and waits until each pod has ended. Pods of
// DaemonSets and static pods stay, because they belong to the node. A pod that
// can never be evicted is a problem before anything is changed. If the drain
// fails, the node becomes schedulable again.
func (n Node) Drain(d Drain) step.Step {
	return step.Step{
		ID: step.IDOf("drain", n.Name), Name: "drain node " + n.Name,
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) { return n.toDrain(ctx, d) },
		Apply: func(ctx context.Context) error {
			// A Check that got no answer in time has refused nothing.
			if _, err := n.toDrain(ctx, d); err != nil {
				return err
			}
			cordoned, err := n.cordon(ctx)
			if err == nil {
				err = step.Until(step.WithLimit(ctx, d.Limit), n.evict, nil)
			}
			if err != nil && cordoned {
				return n.takeAgain(ctx, err)
			}
			return err
		},
	}
}

func (n Node) toDrain(ctx context.Context, d Drain) (step.Diff, error) {
	node, err := n.get(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pods, err := n.movable(ctx)
	if err != nil {
		return nil, err
	}
	var diff step.Diff
	if !node.Spec.Unschedulable {
		diff = append(diff, "cordon node "+n.Name)
	}
	if len(pods) > 0 {
		diff = append(diff, fmt.Sprintf("evict %d pods: %s", len(pods), podNames(pods)))
	}
	errs := []error{n.blocked(ctx, pods)}
	if !d.LoseBare {
		errs = append(errs, bare(pods))
	}
	return diff, errors.Join(errs...)
}

// cordon cordons the node, unless it is cordoned already, and reports whether
// it did so. The cordon of an administrator stays, even if the drain fails.
func (n Node) cordon(ctx context.Context) (cordoned bool, err error) {
	node, err := n.get(ctx)
	if err != nil {
		return false, err
	}
	if node.Spec.Unschedulable {
		return node.Annotations[cordonAnnotation] != "", nil
	}
	return true, n.patch(ctx, `{"metadata":{"annotations":{"`+cordonAnnotation+
		`":"true"}},"spec":{"unschedulable":true}}`)
}

// takeAgain uncordons the node after a drain that failed or was interrupted.
func (n Node) takeAgain(ctx context.Context, failed error) error {
	ctx, cancel := step.Checking(context.WithoutCancel(ctx))
	defer cancel()
	if err := n.uncordon(ctx); err != nil {
		return fmt.Errorf("%w; the node stays cordoned: %w; run `kubectl uncordon %s`", failed, err, n.Name)
	}
	return fmt.Errorf("%w; the node takes pods again: use a longer --timeout, or --force, which does not drain", failed)
}

// evict requests the eviction of each pod. The error lists the remaining pods.
func (n Node) evict(ctx context.Context) error {
	pods, err := n.movable(ctx)
	if err != nil || len(pods) == 0 {
		return err
	}
	client, err := n.API.Client()
	if err != nil {
		return err
	}
	var held []string
	for _, p := range pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		err := kube.Evict(ctx, client, p)
		switch {
		case apierrors.IsTooManyRequests(err):
			held = append(held, p.Namespace+"/"+p.Name)
		case err != nil:
			return fmt.Errorf("evict %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	text := fmt.Sprintf("%d pods are left: %s", len(pods), podNames(pods))
	if len(held) > 0 {
		text += "; a disruption budget holds " + strings.Join(held, ", ")
	}
	return errors.New(text)
}

// movable returns the pods that end with the node.
func (n Node) movable(ctx context.Context) ([]corev1.Pod, error) {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	return kube.Ask(n.API, func(client kubernetes.Interface) ([]corev1.Pod, error) {
		on := fields.OneTermEqualSelector("spec.nodeName", n.Name).String()
		list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: on})
		if err != nil {
			return nil, fmt.Errorf("pods of node %s: %w", n.Name, err)
		}
		return slices.DeleteFunc(list.Items, staysOnNode), nil
	})
}

func staysOnNode(p corev1.Pod) bool {
	_, static := p.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOf(&p)
	return static || ended(p) || owner != nil && owner.Kind == "DaemonSet"
}

// ended reports whether the kubelet has nothing left to do for a pod. A deleted
// pod gets its final phase before the kubelet removes it from the API. The
// kubelet removes it with a grace period of 0. After that, only a finalizer
// keeps the pod.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubelet/status/status_manager.go#L1302-L1310
func ended(p corev1.Pod) bool {
	final := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	removed := p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
	return final && (p.DeletionTimestamp == nil || removed)
}

// bare returns the problem that no controller recreates some pods.
func bare(pods []corev1.Pod) error {
	lost := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool {
		return metav1.GetControllerOf(&p) != nil || p.DeletionTimestamp != nil
	})
	if len(lost) == 0 {
		return nil
	}
	return &step.Problem{Name: "pods-lost", Text: "no controller would recreate these pods: " + podNames(lost),
		Remedy: "delete them, or use --lose-pods, which drains and deletes them, or --force, which does not drain"}
}

func podNames(pods []corev1.Pod) string {
	const most = 6
	var names []string
	for _, p := range pods[:min(len(pods), most)] {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	if len(pods) > most {
		names = append(names, "...")
	}
	return strings.Join(names, ", ")
}

// blocked returns the pods whose disruption budget never allows an eviction. A
// budget that only waits for another pod is not a problem, because the drain
// waits too.
func (n Node) blocked(ctx context.Context, pods []corev1.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	return n.API.Do(func(client kubernetes.Interface) error {
		list, err := client.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list disruption budgets: %w", err)
		}
		return host.Each(list.Items, func(budget policyv1.PodDisruptionBudget) error { return blockedBy(budget, pods) })
	})
}

func blockedBy(budget policyv1.PodDisruptionBudget, pods []corev1.Pod) error {
	now := budget.Status
	if now.ObservedGeneration < budget.Generation || now.ExpectedPods == 0 || now.DesiredHealthy < now.ExpectedPods {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return fmt.Errorf("disruption budget %s/%s: %w", budget.Namespace, budget.Name, err)
	}
	// The API server may apply other rules to pods that are not Ready, so leave the
	// decision to it.
	held := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool {
		return p.Namespace != budget.Namespace || !kube.PodReady(p) || p.DeletionTimestamp != nil ||
			!selector.Matches(labels.Set(p.Labels))
	})
	if len(held) == 0 {
		return nil
	}
	return &step.Problem{
		Name: "disruption-budget",
		Text: fmt.Sprintf("disruption budget %s/%s never lets a pod go, since all %d of its pods must be healthy: %s",
			budget.Namespace, budget.Name, now.ExpectedPods, podNames(held)),
		Remedy: "scale the pods up, change the budget, or use --force, which does not drain",
	}
}
