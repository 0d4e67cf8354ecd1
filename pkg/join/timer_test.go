package join

import (
	"context"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

func TestApprovalsAreATimerOrCron(t *testing.T) {
	for init, want := range map[string]string{"systemd": "ExecStart=/b/kube-bootstrap approve", "sysv": "root /b/kube-bootstrap approve"} {
		var all strings.Builder
		for _, f := range approvalFiles(init, "/b/kube-bootstrap") {
			all.Write(f.Data)
		}
		if !strings.Contains(all.String(), want) {
			t.Errorf("%s: no %q in\n%s", init, want, &all)
		}
	}
}

func TestApprovalsLookWithoutTouching(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	diff, err := Approvals(files, host.OpenUnits(), "/b").Check(t.Context())
	if err != nil || len(diff) == 0 {
		t.Errorf("%v %v", diff, err)
	}
}

// systemd is an init system whose timer is in that state.
type systemd struct {
	host.Units
	active bool
}

func (systemd) Init() string                                   { return "systemd" }
func (s systemd) Active(context.Context, string) (bool, error) { return s.active, nil }

// A run that was killed between enabling and starting the timer has written all
// files, and nothing would start the timer before the next boot.
func TestApprovalsStartATimerThatIsOnlyEnabled(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	if err := files.Put(append(approvalFiles("systemd", "/b"), host.File{Path: approveLink})); err != nil {
		t.Fatal(err)
	}
	for active, want := range map[bool]int{false: 1, true: 0} {
		diff, err := Approvals(files, systemd{active: active}, "/b").Check(t.Context())
		if err != nil || len(diff) != want {
			t.Errorf("active %t: %v %v", active, diff, err)
		}
	}
}
