package kernel

import (
	"os"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestStalled(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"some avg10=54.10 avg60=59.29 avg300=47.07 total=313081139\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n": 313081139 * time.Microsecond,
		"": 0, "some": 0,
	} {
		if got := stalled([]byte(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestWorked(t *testing.T) {
	stat := "cpu  100 20 30 9999 40 0 6 4 50 0\ncpu0 50 10 15 5000 20 0 3 2 25 0\ncpu1 50 10 15 4999 20 0 3 2 25 " +
		"0\nintr 1 2\n"
	if got, want := worked([]byte(stat)), time.Second; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	now, err := os.ReadFile("/proc/stat")
	must.NoError(t, err)
	if worked(now) <= 0 {
		t.Errorf("this machine has never worked: %s", now)
	}
}
