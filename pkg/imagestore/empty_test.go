package imagestore

import (
	"slices"
	"testing"
)

func TestChildrenFirst(t *testing.T) {
	got := childrenFirst(map[string]string{"base": "", "middle": "base", "top": "middle"})
	if !slices.Equal(got, []string{"top", "middle", "base"}) {
		t.Errorf("got %v", got)
	}
}
