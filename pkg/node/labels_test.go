package node

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/rest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// after returns the node after the API server has applied the patch of Mark.
// before are the marks that earlier settings gave to it.
func (m LabelsAndTaints) after(t *testing.T, node corev1.Node, before LabelsAndTaints) corev1.Node {
	t.Helper()
	c := m.changes(&node, before)
	if len(c.diff) == 0 {
		return node
	}
	was, err := json.Marshal(node)
	must.NoError(t, err)
	is, err := strategicpatch.StrategicMergePatch(was, []byte(c.patch()), corev1.Node{})
	if err != nil {
		t.Fatalf("%v: %s", err, c.patch())
	}
	var after corev1.Node
	must.NoError(t, json.Unmarshal(is, &after))
	if left := m.changes(&after, m).diff; len(left) > 0 {
		t.Errorf("still to do: %s", left)
	}
	return after
}

func labelled(t *testing.T, words ...string) []config.Label {
	t.Helper()
	all := make([]config.Label, len(words))
	for i, word := range words {
		must.NoError(t, all[i].UnmarshalText([]byte(word)))
	}
	return all
}

func tainted(t *testing.T, words ...string) []config.Taint {
	t.Helper()
	all := make([]config.Taint, len(words))
	for i, word := range words {
		must.NoError(t, all[i].UnmarshalText([]byte(word)))
	}
	return all
}

func taint(t *testing.T, word string) config.Taint { return tainted(t, word)[0] }

func taints(node corev1.Node) (all []string) {
	for _, t := range node.Spec.Taints {
		all = append(all, t.ToString())
	}
	slices.Sort(all)
	return all
}

func TestMarksFollowTheSettings(t *testing.T) {
	var node corev1.Node
	node.ResourceVersion = "7"
	node.Labels = map[string]string{"of-user": "1", "disk": "of-kubelet"}
	node.Spec.Taints = []corev1.Taint{taint(t, "of-user:NoSchedule").Taint,
		taint(t, "node.kubernetes.io/not-ready:NoExecute").Taint}

	first := LabelsAndTaints{
		Labels: labelled(t, "disk=ssd", "zone="), Taints: tainted(t, "dedicated=db:NoSchedule", "x:NoExecute"),
	}
	node = first.after(t, node, LabelsAndTaints{})
	if node.Labels["disk"] != "ssd" || len(node.Labels) != 3 || node.Labels["of-user"] != "1" {
		t.Errorf("labels are %v", node.Labels)
	}
	if got := taints(node); len(got) != 4 || !slices.Contains(got, "dedicated=db:NoSchedule") ||
		!slices.Contains(got, "x:NoExecute") {
		t.Errorf("taints are %v", got)
	}
	node.Labels["by-kubectl"] = "2"
	second := LabelsAndTaints{Labels: labelled(t, "disk=hdd"), Taints: tainted(t, "dedicated=web:NoSchedule")}
	node = second.after(t, node, first)
	if _, there := node.Labels["zone"]; there || node.Labels["disk"] != "hdd" || node.Labels["by-kubectl"] != "2" {
		t.Errorf("labels are %v", node.Labels)
	}
	if got := taints(node); len(got) != 3 || !slices.Contains(got, "dedicated=web:NoSchedule") {
		t.Errorf("taints are %v", got)
	}
	node.Labels["disk"] = "by-kubectl"
	node = LabelsAndTaints{}.after(t, node, second)
	if got := taints(node); len(got) != 2 || node.Labels["disk"] != "by-kubectl" {
		t.Errorf("left are taints %v, labels %v: what a user has changed is the user's", got, node.Labels)
	}
}

func TestAKubeletLeavesItsTaints(t *testing.T) {
	var node corev1.Node
	node = LabelsAndTaints{Labels: labelled(t, "a=b"), Taints: tainted(t, "dedicated=db:NoSchedule"),
		ByKubelet: true}.after(t, node, LabelsAndTaints{})
	if node.Labels["a"] != "b" || len(node.Spec.Taints) > 0 {
		t.Errorf("labels %v, taints %v", node.Labels, node.Spec.Taints)
	}
}

func TestANodeWithoutMarksIsLeftAlone(t *testing.T) {
	node := corev1.Node{}
	if diff := (LabelsAndTaints{}).changes(&node, LabelsAndTaints{}).diff; len(diff) > 0 {
		t.Errorf("to do: %s", diff)
	}
}

// TestAControlPlaneDoesNotTrustAKubelet: the annotation may name a taint or a
// label of an administrator.
func TestAControlPlaneDoesNotTrustAKubelet(t *testing.T) {
	node := corev1.Node{}
	node.Annotations = map[string]string{labelsAnnotation: `{"taints":["quarantine:NoExecute"]}`}
	node.Spec.Taints = []corev1.Taint{taint(t, "quarantine:NoExecute").Taint}
	errNoAPI := errors.New("no API server")
	n := Node{Name: "w", API: func() (*rest.Config, error) { return nil, errNoAPI }}
	if _, err := n.given(t.Context(), &node, false); !errors.Is(err, errNoAPI) {
		t.Errorf("asks the node and not the API server: %v", err)
	}
	if own, err := n.given(t.Context(), &node, true); err != nil || len(own.Taints) != 1 {
		t.Errorf("the worker itself: %+v, %v", own, err)
	}
	node = LabelsAndTaints{Labels: labelled(t, "a=b")}.after(t, node, LabelsAndTaints{})
	if got := taints(node); len(got) != 1 {
		t.Errorf("taints are %v", got)
	}
}

// TestAKilledRunHasGivenItsMarks: what is remembered before the node changes
// contains the old and the new marks.
func TestAKilledRunHasGivenItsMarks(t *testing.T) {
	both := LabelsAndTaints{Labels: labelled(t, "b=1", "a=1")}.and(LabelsAndTaints{Labels: labelled(t, "a=1"),
		Taints: tainted(t, "x:NoExecute")})
	if want := (LabelsAndTaints{Labels: labelled(t, "a=1", "b=1"),
		Taints: tainted(t, "x:NoExecute")}); text(both) != text(want) {
		t.Errorf("got %+v", both)
	}
}
