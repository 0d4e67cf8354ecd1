package tokens

import (
	"errors"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join/certkey"
)

// TestNoTokenIsLeftThatNobodySaw: during a rotation of a key, control planes share nothing.
func TestNoTokenIsLeftThatNobodySaw(t *testing.T) {
	rotating := errors.New("a rotation is under way")
	for kind, want := range map[join.HostKind]int{join.ForWorker: 1, join.ForControlPlane: 0} {
		created := 0
		_, _, err := createToken(kind, func() (certkey.Key, error) { return certkey.Key{}, rotating },
			func() (join.Token, error) { created++; return join.Token{}, nil })
		if created != want || errors.Is(err, rotating) != (want == 0) {
			t.Errorf("%s: %d tokens created, %v", kind, created, err)
		}
	}
}
