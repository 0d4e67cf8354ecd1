package docker

import (
	"errors"
	"testing"
)

func TestOnlyAPortInUseIsAPortInUse(t *testing.T) {
	for text, want := range map[string]bool{
		"Bind for 127.0.0.1:6443 failed: port is already allocated": true,
		"listen tcp4 127.0.0.1:6443: bind: address already in use":  true,
		"failed to create shim task: OCI runtime create failed":     false,
	} {
		if got := errors.Is(portError(errors.New(text)), ErrPortTaken); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if err := portError(nil); err != nil {
		t.Error(err)
	}
}
