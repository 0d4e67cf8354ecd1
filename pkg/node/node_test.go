package node

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

func TestReady(t *testing.T) {
	for want, node := range map[string]corev1.Node{
		"": {
			Spec: corev1.NodeSpec{
				Taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}},
			},
			Status: status(corev1.ConditionTrue, ""),
		},
		"has not reported yet": {},
		"is not Ready: no CNI": {Status: status(corev1.ConditionFalse, "no CNI")},
		"is not Ready: gone":   {Status: status(corev1.ConditionUnknown, "gone")},
		"still has the taint": {
			Spec: corev1.NodeSpec{
				Taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}},
			},
			Status: status(corev1.ConditionTrue, ""),
		},
	} {
		err := ready(&node, time.Time{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A Ready condition of the previous kubelet process says nothing about the
// current one.
func TestReadySinceTheKubeletWasStarted(t *testing.T) {
	node := corev1.Node{Status: status(corev1.ConditionTrue, "")}
	said := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(said)
	}
	if err := ready(&node, said); err != nil {
		t.Error(err)
	}
	if err := ready(&node, said.Add(time.Second)); err == nil ||
		!strings.Contains(err.Error(), "has not reported since") {
		t.Errorf("got %v", err)
	}
}

// A kubelet that cannot reach the API server leaves its last condition and an old lease.
func TestExpiredLease(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]bool{10 * time.Second: false, 41 * time.Second: true} {
		renewed := metav1.NewMicroTime(now.Add(-age))
		lease := coordinationv1.Lease{
			Spec: coordinationv1.LeaseSpec{RenewTime: &renewed, LeaseDurationSeconds: ptr.To[int32](40)},
		}
		if err := expired(&lease, now); (err != nil) != want {
			t.Errorf("%s: got %v", age, err)
		}
	}
	if err := expired(&coordinationv1.Lease{}, now); err != nil {
		t.Error(err)
	}
}

func status(ready corev1.ConditionStatus, message string) corev1.NodeStatus {
	return corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeReady, Status: ready, Message: message},
	}}
}

// On a host without a kubeconfig the steps have something to do and no error.
func TestCheckOnFreshHost(t *testing.T) {
	n := Node{API: kube.Kubeconfig(t.TempDir() + "/kubelet.conf"), Name: "worker-1"}
	for _, s := range []func() (int, error){
		func() (int, error) { d, err := n.WaitReady().Check(t.Context()); return len(d), err },
		func() (int, error) {
			d, err := n.Label(LabelsAndTaints{Labels: labelled(t, "a=b")}).Check(t.Context())
			return len(d), err
		},
	} {
		if lines, err := s(); err != nil || lines != 1 {
			t.Errorf("got %d lines, %v", lines, err)
		}
	}
}
