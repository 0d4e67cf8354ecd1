package file

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

func TestTheSettingsOfAHostAreNobodysWish(t *testing.T) {
	if at := (decoder{path: config.SavedPath}).origin(word("")); at.Source != config.FromHost {
		t.Errorf("what a host was set up with is from %s", at)
	}
}
