package join

import (
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
