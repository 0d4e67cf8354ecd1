package machines

import (
	"slices"
	"testing"
)

func TestParseEngineHost(t *testing.T) {
	all, err := parseEngineHost("Name:\tx\nCapBnd:\t000001ffffffffff\nCapAmb:\t0\nModules: 1\nFree:    4096\n")
	if err != nil || len(all.Caps) != len(capabilities) || !all.Modules || all.FreeBytes != 4096 {
		t.Errorf("all there is: %v, %v", all, err)
	}
	without, err := parseEngineHost("CapBnd:\t000001fffeffffff\n")
	if err != nil || len(without.Caps) != len(capabilities)-1 || without.Modules {
		t.Errorf("one less: %v, %v", without, err)
	}
	if slices.Contains(without.Caps, "SYS_RESOURCE") {
		t.Error("SYS_RESOURCE is bit 24, which is not set")
	}
	for _, bad := range []string{"Name: x\n", "CapBnd: none\n", "CapBnd: 1\nFree: df: no such file\n"} {
		if _, err := parseEngineHost(bad); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}
