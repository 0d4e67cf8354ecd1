package memory

import "testing"

// The test program goes on after its pages were dropped.
func TestDropProgramFindsTheProgram(t *testing.T) {
	Save()
	if len(program()) == 0 {
		t.Error("no read-only mapping of the program found")
	}
	m := mappingOf([]string{"00400000-02151000", "r-xp", "00000000", "fe:00", "852289", "/bin/x"}, "/bin/x")
	if m != (mapping{0x400000, 0x1d51000}) {
		t.Errorf("%x", m)
	}
	for _, fields := range [][]string{
		{"00400000-02151000", "rw-p", "00000000", "fe:00", "852289", "/bin/x"},
		{"00400000-02151000", "r-xp", "00000000", "fe:00", "852289", "/bin/y"},
		{"00400000-02151000", "r-xp", "00000000", "00:00", "0"},
	} {
		if m := mappingOf(fields, "/bin/x"); m.length > 0 {
			t.Errorf("%v: %x", fields, m)
		}
	}
}
