package testhost

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestANodeIsBackOnlyWithAReportOfThisBoot(t *testing.T) {
	booted := time.Date(2026, 5, 1, 12, 0, 0, 700_000_000, time.UTC)
	report := func(at time.Time, status corev1.ConditionStatus) []corev1.NodeCondition {
		return []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, LastHeartbeatTime: metav1.NewTime(at)},
			{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.NewTime(at)},
		}
	}
	for name, test := range map[string]struct {
		conditions []corev1.NodeCondition
		back       bool
	}{
		"no report":          {nil, false},
		"of before":          {report(booted.Add(-time.Hour), corev1.ConditionTrue), false},
		"of now, Ready":      {report(booted.Add(5*time.Second), corev1.ConditionTrue), true},
		"of now, not":        {report(booted.Add(5*time.Second), corev1.ConditionFalse), false},
		"in the same second": {report(booted.Truncate(time.Second), corev1.ConditionTrue), true},
	} {
		err := reportsReady(&corev1.Node{Status: corev1.NodeStatus{Conditions: test.conditions}}, booted)
		if (err == nil) != test.back {
			t.Errorf("%s: %v", name, err)
		}
	}
}
