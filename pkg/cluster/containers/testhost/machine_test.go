package testhost

import (
	"errors"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
)

func TestGoesOff(t *testing.T) {
	for code, want := range map[int]bool{1: false, 126: true, 127: false, 137: true, 143: true} {
		if err := error(&access.ExitError{Code: code}); goesOff(err) != want {
			t.Errorf("exit status %d: want %t", code, want)
		}
	}
	if !goesOff(errors.New("the connection to the engine has ended")) {
		t.Error("a command without an exit status")
	}
}
