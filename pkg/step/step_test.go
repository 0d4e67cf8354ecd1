package step

import (
	"strconv"
	"strings"
	"testing"
)

func TestDiffListsTheFirstDifferences(t *testing.T) {
	var diff Diff
	for i := range 12 {
		diff = append(diff, strconv.Itoa(i))
	}
	for n, want := range map[int]string{0: "", 2: "0; 1", 11: strings.Join(diff[:11], "; "), 12: "0; 1; 2; 3; 4; 5; 6; 7; 8; 9; and 2 more"} {
		if got := diff[:n].String(); got != want {
			t.Errorf("%d differences: %q, want %q", n, got, want)
		}
	}
}
