package hosts

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Power does one thing to all machines at the same time.
func Power(t *testing.T, verb string, all ...Machine) {
	t.Helper()
	args := []string{"docker", verb}
	if verb == "stop" {
		args = append(args, "-t", "20")
	}
	for _, m := range all {
		args = append(args, m.Name)
	}
	if _, err := (host.Command{Args: args}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Restart is a reboot: the machine is a container with an init.
func Restart(t *testing.T, all ...Machine) {
	t.Helper()
	Power(t, "stop", all...)
	Power(t, "start", all...)
}
