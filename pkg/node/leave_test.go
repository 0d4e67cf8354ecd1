package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func pod(name string, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	change(&p)
	return p
}

func owned(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "owner", Controller: new(true)}}
	}
}

func TestWhatStaysOnANode(t *testing.T) {
	for name, test := range map[string]struct {
		pod   corev1.Pod
		stays bool
	}{
		"of a ReplicaSet": {pod("a", owned("ReplicaSet")), false},
		"of a DaemonSet":  {pod("b", owned("DaemonSet")), true},
		"static":          {pod("c", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }), true},
		"ended":           {pod("d", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), true},
		"of nobody":       {pod("e", func(*corev1.Pod) {}), false},
	} {
		if got := staysOnNode(test.pod); got != test.stays {
			t.Errorf("pod %s: stays is %v", name, got)
		}
	}
}

func TestPodsThatWouldBeLostAreNamed(t *testing.T) {
	ending := pod("ending", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
	if err := bare([]corev1.Pod{pod("a", owned("ReplicaSet")), ending}); err != nil {
		t.Error(err)
	}
	problems := step.Problems(bare([]corev1.Pod{pod("a", owned("ReplicaSet")), pod("alone", func(*corev1.Pod) {})}))
	if len(problems) != 1 || problems[0].Name != "pods-lost" {
		t.Errorf("got %v", problems)
	}
}
