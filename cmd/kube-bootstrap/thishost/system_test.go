package thishost

import "testing"

func TestCommandsOfAHostNeedLinux(t *testing.T) {
	if err := wrongSystem("master", "linux"); err != nil {
		t.Error(err)
	}
	const want = "master acts on this host and needs Linux, and this machine runs darwin"
	if err := wrongSystem("master", "darwin"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
