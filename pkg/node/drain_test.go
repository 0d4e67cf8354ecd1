package node

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

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

func deletedWithGrace(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.DeletionTimestamp, p.DeletionGracePeriodSeconds = corev1.PodFailed,
			&metav1.Time{Time: time.Now()}, &seconds
	}
}

func TestWhatStaysOnANode(t *testing.T) {
	for name, test := range map[string]struct {
		pod   corev1.Pod
		stays bool
	}{
		"of a ReplicaSet": {pod("a", owned("ReplicaSet")), false},
		"of a DaemonSet":  {pod("b", owned("DaemonSet")), true},
		"static": {pod("c", func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}), true},
		"ended":          {pod("d", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), true},
		"of nobody":      {pod("e", func(*corev1.Pod) {}), false},
		"ended, deleted": {pod("f", deletedWithGrace(30)), false},
		"ended, removed": {pod("g", deletedWithGrace(0)), true},
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

// The Runner applies a step whose Check got no answer in time.
func TestADrainThatWasNotCheckedRefusesToo(t *testing.T) {
	var changed []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = corev1.Node{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "worker-1"},
		}
		switch {
		case r.Method != http.MethodGet:
			changed = append(changed, r.Method+" "+r.URL.Path)
		case strings.HasSuffix(r.URL.Path, "/pods"):
			answer = corev1.PodList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
				Items:    []corev1.Pod{pod("alone", func(*corev1.Pod) {})},
			}
		case strings.HasSuffix(r.URL.Path, "/poddisruptionbudgets"):
			answer = metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudgetList"}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	config := rest.Config{Host: server.URL}
	n := Node{API: func() (*rest.Config, error) { return &config, nil }, Name: "worker-1"}
	ctx := step.WithLimit(t.Context(), time.Second)
	problems := step.Problems(n.Drain(Drain{Limit: time.Second}).Apply(ctx))
	if len(problems) != 1 || problems[0].Name != "pods-lost" {
		t.Errorf("got %v", problems)
	}
	if len(changed) > 0 {
		t.Errorf("changed before it refused: %v", changed)
	}
}
