package host

import (
	"bytes"
	"testing"
)

func TestParseBoundingSet(t *testing.T) {
	all, err := parseBoundingSet("Name:\tx\nCapBnd:\t000001ffffffffff\nCapAmb:\t0\n")
	if err != nil || len(all) != len(capabilities) {
		t.Errorf("all capabilities: %v, %v", all, err)
	}
	without, err := parseBoundingSet("CapBnd:\t000001fffeffffff\n")
	if err != nil || len(without) != len(capabilities)-1 {
		t.Errorf("one less: %v, %v", without, err)
	}
	for _, c := range without {
		if c == "SYS_RESOURCE" {
			t.Error("SYS_RESOURCE is bit 24, which is not set")
		}
	}
	if _, err := parseBoundingSet("Name: x\n"); err == nil {
		t.Error("a status without CapBnd is no error")
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
