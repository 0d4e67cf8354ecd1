package join

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cluster-bootstrap/token/util"
)

// TestScopeIsInTheGroups: the API server accepts the groups, and they say what
// the token is for.
func TestScopeIsInTheGroups(t *testing.T) {
	for _, want := range []Scope{
		{Kind: ForWorker},
		{Kind: ForWorker, Reusable: true},
		{Kind: ForWorker, Node: "worker-1"},
		{Kind: ForWorker, Node: "worker-1.rack.example"},
		{Kind: ForControlPlane, Reusable: true},
	} {
		groups := want.groups()
		for _, group := range groups {
			if err := util.ValidateBootstrapGroupName(group); err != nil {
				t.Error(err)
			}
		}
		if got := scopeOf(append(groups, "system:bootstrappers", "system:authenticated")); got != want {
			t.Errorf("%q is %+v, want %+v", groups, got, want)
		}
	}
	if got := scopeOf([]string{"system:bootstrappers",
		"system:bootstrappers:kubeadm:default-node-token"}); got != (Scope{}) {
		t.Errorf("a token of kubeadm is %+v", got)
	}
}

// TestWhichNamesATokenIsFor: no name of a node that exists, unless the token is
// for that node.
func TestWhichNamesATokenIsFor(t *testing.T) {
	for name, c := range map[string]struct {
		scope  Scope
		known  bool
		reason string
	}{
		"any, a new node":            {Scope{Kind: ForWorker}, false, ""},
		"any, a node that exists":    {Scope{Kind: ForWorker}, true, "has a node worker-1"},
		"reusable, a new node":       {Scope{Kind: ForWorker, Reusable: true}, false, ""},
		"reusable, existing node":    {Scope{Kind: ForWorker, Reusable: true}, true, "has a node worker-1"},
		"its own, a new node":        {Scope{Kind: ForWorker, Node: "worker-1"}, false, ""},
		"for an existing node":       {Scope{Kind: ForWorker, Node: "worker-1"}, true, ""},
		"another node's":             {Scope{Kind: ForWorker, Node: "worker-2"}, false, "is for node worker-2"},
		"for control planes":         {Scope{Kind: ForControlPlane}, false, "not for workers"},
		"not made by kube-bootstrap": {Scope{}, false, "not for workers"},
	} {
		err := c.scope.refuses("worker-1", c.known)
		if c.reason == "" && err != nil || c.reason != "" && (err == nil || !strings.Contains(err.Error(), c.reason)) {
			t.Errorf("%s: got %v, want %q", name, err, c.reason)
		}
	}
}

// TestWhenATokenIsUsedUp: an API server keeps times in seconds.
func TestWhenATokenIsUsedUp(t *testing.T) {
	asked := time.Now().Truncate(time.Second)
	node := func(at time.Time) *corev1.Node {
		return &corev1.Node{
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{LastHeartbeatTime: metav1.NewTime(at)}}},
		}
	}
	if reported(&corev1.Node{}, asked) || reported(node(asked.Add(-time.Second)), asked) {
		t.Error("the kubelet has not fetched its certificate yet")
	}
	if !reported(node(asked), asked) || !reported(node(asked.Add(time.Minute)), asked) {
		t.Error("the kubelet uses its certificate")
	}
}
