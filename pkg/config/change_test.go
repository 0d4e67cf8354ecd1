package config

import (
	"slices"
	"testing"
)

func TestEverySettingSaysWhetherItMayChange(t *testing.T) {
	for _, s := range settings {
		if s.Change == "" {
			t.Errorf("%s: the row does not say whether the setting may change", s.Field)
		}
	}
}

func TestANodeOfTheFileSaysAllThatIsItsOwn(t *testing.T) {
	var n NodeEntry
	n.Settings.NodeLabels = []Label{{"disk", "ssd"}}
	args := n.Args()
	for _, want := range []string{"--node-label=disk=ssd", "--node-taint=", "--kubelet-config="} {
		if !slices.Contains(args, want) {
			t.Errorf("%q lacks %s: an earlier value would stay", args, want)
		}
	}
}
