package plan

import (
	"fmt"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUnenforcedPoliciesAreNamed(t *testing.T) {
	var policies []networkingv1.NetworkPolicy
	for i, want := range []string{
		"the network plugin bridge does not enforce NetworkPolicy shop/deny-0",
		"the network plugin bridge does not enforce NetworkPolicy shop/deny-0, shop/deny-1",
		"the network plugin bridge does not enforce NetworkPolicy shop/deny-0, shop/deny-1, shop/deny-2",
		"the network plugin bridge does not enforce NetworkPolicy shop/deny-0, shop/deny-1, shop/deny-2 and 1 more",
	} {
		policies = append(policies, networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("deny-%d", i)}})
		if got := unenforced("bridge", policies).Text; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
