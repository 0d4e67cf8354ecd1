package addon

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func dnsPod(name, node string, after time.Duration) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(began.Add(after))},
		Spec: corev1.PodSpec{NodeName: node, Tolerations: []corev1.Toleration{
			{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoSchedule},
		}},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func readyNode(name string, after time.Duration, taints ...corev1.Taint) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(began)},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(began.Add(after))},
		}},
	}
}

func TestTogether(t *testing.T) {
	both := []corev1.Pod{dnsPod("a", "m", 0), dnsPod("b", "m", 0)}
	if !together(both) {
		t.Error("two on one node are together")
	}
	starts := dnsPod("b", "m", 0)
	starts.Status.Conditions = nil
	goes := dnsPod("b", "m", 0)
	goes.DeletionTimestamp = &metav1.Time{Time: began}
	for name, pods := range map[string][]corev1.Pod{
		"none": nil, "a single one": both[:1], "spread": {both[0], dnsPod("b", "w", 0)},
		"one is not ready": {both[0], starts}, "one goes": {both[0], goes},
	} {
		if together(pods) {
			t.Errorf("%s: nothing may be evicted", name)
		}
	}
}

func TestCrowd(t *testing.T) {
	pods := []corev1.Pod{dnsPod("b", "m", time.Minute), dnsPod("a", "m", time.Minute)}
	controlPlane := readyNode("m", 0, corev1.Taint{
		Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule,
	})
	worker := readyNode("w", 2*time.Minute)
	if pod, room := crowd(pods, []corev1.Node{controlPlane, worker}); pod == nil || pod.Name != "a" || room != "w" {
		t.Errorf("got %v, %q; want the first by name, and the node that joined", pod, room)
	}
	further := readyNode("m2", 2*time.Minute, controlPlane.Spec.Taints...)
	if _, room := crowd(pods, []corev1.Node{controlPlane, further}); room != "m2" {
		t.Errorf("got %q; CoreDNS goes to control planes as well", room)
	}
	cordoned, down := worker, worker
	cordoned.Spec.Unschedulable = true
	down.Status.Conditions = nil
	for name, n := range map[string]corev1.Node{
		"Ready before the pods": readyNode("w", 0), "Ready in the pods' second": readyNode("w", time.Minute),
		"the node of the pods": readyNode("m", 2*time.Minute),
		"cordoned":             cordoned, "not Ready": down,
		"tainted": readyNode("w", 2*time.Minute, corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}),
	} {
		if pod, _ := crowd(pods, []corev1.Node{controlPlane, n}); pod != nil {
			t.Errorf("%s: pod %s would be evicted for nothing", name, pod.Name)
		}
	}
	// The replacement is younger than the Ready condition, wherever it is placed.
	if pod, _ := crowd([]corev1.Pod{pods[0], dnsPod("c", "m", 3*time.Minute)},
		[]corev1.Node{controlPlane, worker}); pod != nil {
		t.Error("a second eviction for the same node")
	}
	again := readyNode("w", 4*time.Minute)
	if pod, _ := crowd([]corev1.Pod{pods[0], dnsPod("c", "m", 3*time.Minute)},
		[]corev1.Node{controlPlane, again}); pod == nil {
		t.Error("a node that was not Ready when the replacement was placed gets no pod")
	}
}
