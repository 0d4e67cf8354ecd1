package initsystem

import "testing"

// An Undo that was killed after it had disabled the service disables it again.
func TestDisableAServiceThatIsNotEnabled(t *testing.T) {
	t.Setenv("PATH", "") // the programs of the init system would fail
	if err := openrc.Disable(t.Context(), "kube-bootstrap-missing"); err != nil {
		t.Error(err)
	}
}
