package netfilter

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
)

func TestOnlyEmptyChainsAreNothing(t *testing.T) {
	for chain, want := range map[string]bool{
		`{"name":"OUTPUT","hook":"output","policy":"accept"}`: true,
		`{"name":"FORWARD","hook":"forward","policy":"drop"}`: false,
		`{"name":"MINE"}`: false,
	} {
		if got := acceptsAll([]byte(chain)); got != want {
			t.Errorf("%s: %t", chain, got)
		}
	}
}

// TestNftOnAKernelWithoutIt: such a kernel has no tables, and a program that fails for
// another reason is an error.
func TestNftOnAKernelWithoutIt(t *testing.T) {
	for answer, unsupported := range map[string]bool{
		"netlink: Error: cache initialization failed: Invalid argument":                                        true,
		"netlink: Error: cache initialization failed: Operation not supported":                                 true,
		"netlink.c:65: Unable to initialize Netlink socket: Protocol not supported":                            true,
		"Operation not permitted (you must be root)":                                                           false,
		"nft: error while loading shared libraries: libnftables.so.1: cannot open shared object file: No such": false,
	} {
		t.Run(answer, func(t *testing.T) {
			hosttest.FakeProgram(t, "nft", "echo '"+answer+"' >&2; exit 1")
			if _, err := NftBaseChains(t.Context()); (err == nil) != unsupported {
				t.Error("chains:", err)
			}
		})
	}
}
