package controlplane

import (
	"slices"
	"testing"
)

// TestAnUnfinishedUpgradeEmulatesTheOldVersion: all three components must emulate it.
func TestAnUnfinishedUpgradeEmulatesTheOldVersion(t *testing.T) {
	s := pods(fresh(t))
	for _, p := range []component{s.apiserver(nil), s.manager(), s.scheduler()} {
		for version, want := range map[string]bool{"": false, "1.36": true} {
			s.EmulatedVersion = version
			if got := slices.Contains(flagsOf(t, s, p.name), "--emulated-version=1.36"); got != want {
				t.Errorf("%s, %q: got %v", p.name, version, got)
			}
		}
	}
}
