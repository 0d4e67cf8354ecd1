package hosts

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Docker asks the engine that runs the machines.
func Docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := host.Command{Args: append([]string{"docker"}, args...)}.Run(t.Context())
	must.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// Local runs a command on this machine.
func Local(t *testing.T, args ...string) string {
	t.Helper()
	out, err := host.Run(t.Context(), args...)
	must.NoError(t, err)
	return out
}

// LocalScript runs a script on this machine.
func LocalScript(t *testing.T, script string) string { return Local(t, "sh", "-c", script) }
