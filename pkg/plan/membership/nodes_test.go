package membership

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpiredNodes(t *testing.T) {
	now := time.Now()
	at := func(name string, ready corev1.ConditionStatus, last time.Time) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.NewTime(last)},
		}}}
	}
	year, old := now.AddDate(-1, 0, 0), now.AddDate(-2, 0, 0)
	nodes := []corev1.Node{
		at("master", corev1.ConditionUnknown, old), at("ready", corev1.ConditionTrue, old), at("new", corev1.ConditionUnknown, now),
		at("one", corev1.ConditionUnknown, old), at("two", corev1.ConditionUnknown, old),
	}
	if err := expiredNodes(nodes[:3], []string{"master"}, year); err != nil {
		t.Error(err)
	}
	err := expiredNodes(nodes, []string{"master"}, year)
	if err == nil || !strings.Contains(err.Error(), "off: one, two") || !strings.Contains(err.Error(), "token create --node two`") {
		t.Error(err)
	}
}
