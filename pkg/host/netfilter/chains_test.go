package netfilter

import (
	"strings"
	"testing"
)

func TestDeletionOf(t *testing.T) {
	rules := `-P INPUT ACCEPT
-P OUTPUT ACCEPT
-N DOCKER
-N KUBE-SERVICES
-N KUBE-SVC-A
-A INPUT -m comment --comment "kubernetes \"portals\"" -j KUBE-SERVICES
-A INPUT -j DOCKER
-A OUTPUT -g KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SVC-A
-A KUBE-SVC-A -j DOCKER
`
	const want = `*nat
-D INPUT -m comment --comment "kubernetes \"portals\"" -j KUBE-SERVICES
-D OUTPUT -g KUBE-SERVICES
-F KUBE-SERVICES
-F KUBE-SVC-A
-X KUBE-SERVICES
-X KUBE-SVC-A
COMMIT
`
	prefix := func(p string) func(string) bool {
		return func(chain string) bool { return strings.HasPrefix(chain, p) }
	}
	if got := deletionOf("nat", rules, prefix("KUBE-")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := deletionOf("nat", rules, prefix("FLANNEL-")); got != "" {
		t.Errorf("nothing to delete: %s", got)
	}
}
