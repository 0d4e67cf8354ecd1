package process

import "testing"

func TestMayHave(t *testing.T) {
	for bounding, want := range map[string]bool{"000001fffeffffff": false, "000001ffffffffff": true} {
		if got := mayHave(capSysResource, "Name:\tx\nCapBnd:\t"+bounding+"\n"); got != want {
			t.Errorf("%s: got %v", bounding, got)
		}
	}
}
