package node

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// blocked returns the pods whose disruption budget never allows an eviction. A
// budget that only waits for another pod is not a problem, because the drain
// waits too.
func (n Node) blocked(ctx context.Context, pods []corev1.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	client, err := n.API.Client()
	if err != nil {
		return err
	}
	list, err := client.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list disruption budgets: %w", err)
	}
	var errs []error
	for _, budget := range list.Items {
		errs = append(errs, blockedBy(budget, pods))
	}
	return errors.Join(errs...)
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
	var held []corev1.Pod
	for _, p := range pods {
		// The API server may apply other rules to pods that are not Ready, so
		// leave the decision to it.
		if p.Namespace == budget.Namespace && kube.PodReady(p) && p.DeletionTimestamp == nil && selector.Matches(labels.Set(p.Labels)) {
			held = append(held, p)
		}
	}
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
