package preflight

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestNamesOfHosts(t *testing.T) {
	for name, bad := range map[string]bool{
		"web-01": false, "web.example.com": false, "1234": false, "localhosts": false, strings.Repeat("a", 63): false,
		"web_01": true, "vm-": true, "-x": true, "": true, "localhost": true, "localhost.localdomain": true, strings.Repeat("a", 64): true,
	} {
		h := &local.Host{}
		h.Config.HostName = name
		err := hostNameProblem(request{Host: h, role: local.ControlPlane})
		problems := step.Problems(err)
		if bad != (len(problems) == 1 && problems[0].Name == "host-name") {
			t.Errorf("%q: got %v", name, err)
		}
		if h.Saved.Role = local.ControlPlane; hostNameProblem(request{Host: h, role: local.ControlPlane}) != nil {
			t.Errorf("%q: an installed host cannot change its name", name)
		}
	}
}
