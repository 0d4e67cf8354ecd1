package netfilter

import "testing"

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
