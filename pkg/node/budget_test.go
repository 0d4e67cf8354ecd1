package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestOnlyABudgetThatNeverLetsAPodGoIsAProblem(t *testing.T) {
	ready := func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "web"}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	starting := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }
	other := func(p *corev1.Pod) { ready(p); p.Labels["app"] = "db" }
	for name, test := range map[string]struct {
		desired, expected int32
		generation        int64
		pod               corev1.Pod
		blocked           bool
	}{
		"all must be healthy":      {2, 2, 1, pod("a", ready), true},
		"one may go":               {1, 2, 1, pod("a", ready), false},
		"a pod that is starting":   {2, 2, 1, pod("a", starting), false},
		"a pod of another app":     {2, 2, 1, pod("a", other), false},
		"status of an old budget":  {2, 2, 2, pod("a", ready), false},
		"budget that has no pods":  {0, 0, 1, pod("a", ready), false},
		"a budget for one replica": {1, 1, 1, pod("a", ready), true},
	} {
		budget := policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: test.generation},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			},
			Status: policyv1.PodDisruptionBudgetStatus{
				ObservedGeneration: 1, DesiredHealthy: test.desired, ExpectedPods: test.expected,
			},
		}
		err := blockedBy(budget, []corev1.Pod{test.pod})
		if blocked := len(step.Problems(err)) == 1; blocked != test.blocked {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
