package docker

import (
	"bytes"
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

func TestFirstLineIsKept(t *testing.T) {
	for _, pieces := range [][]string{{"12", "3\nerr", "or\n"}, {"123\nerror\n"}, {"123\n", "error\n"}} {
		var rest bytes.Buffer
		f := firstLine{rest: &rest}
		for _, p := range pieces {
			if n, err := f.Write([]byte(p)); n != len(p) || err != nil {
				t.Fatalf("wrote %d, %v", n, err)
			}
		}
		if f.text() != "123" || rest.String() != "error\n" {
			t.Errorf("%q: first line %q, rest %q", pieces, f.text(), rest.String())
		}
	}
}
