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

func TestCounterReportsTheEndOfATransferThatStartedAgain(t *testing.T) {
	var done, total int64
	ctx := WithReporter(t.Context(), func(_ string, bytes, of int64) { done, total = bytes, of })
	c := NewCounter(ctx, "", 0)
	c.Expect(10)
	c.Add(4)
	c.Add(-4)
	c.Expect(2)
	c.Add(12)
	if done != 12 || total != 12 {
		t.Errorf("%d of %d bytes were reported", done, total)
	}
}
