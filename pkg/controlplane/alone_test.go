package controlplane

import (
	"slices"
	"testing"
)

// TestOnlyAnAPIServerWithOthersDelaysItsEnd: balancers need the delay to find another one.
func TestOnlyAnAPIServerWithOthersDelaysItsEnd(t *testing.T) {
	for _, c := range []struct {
		endpoints []string
		delay     string
	}{
		{[]string{"https://192.0.2.1:2379"}, "0s"},
		{[]string{"https://192.0.2.1:2379", "https://127.0.0.1:6441"}, "5s"},
	} {
		s := pods(fresh(t))
		s.EtcdEndpoints = c.endpoints
		if !slices.Contains(flagsOf(t, s, "kube-apiserver"), "--shutdown-delay-duration="+c.delay) {
			t.Errorf("%v: the delay is not %s", c.endpoints, c.delay)
		}
	}
}
