package local

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// TestTheKeyOfTheCluster: a host that joins requires the signature that the cluster requires,
// unless its user sets another key or none.
func TestTheKeyOfTheCluster(t *testing.T) {
	for name, c := range map[string]struct {
		own, want string
		given     config.Origins
	}{
		"nothing set":   {"", VerifyKeyFile, nil},
		"its own key":   {"/root/our.pub", "/root/our.pub", nil},
		"none, by flag": {"", "", config.Origins{"verifyKey": {Source: config.FromFlag}}},
	} {
		h := &Host{Given: c.given}
		h.Config.VerifyKey = c.own
		takeKey(h, []byte("key"))
		files := KeyFiles(h)
		if h.Config.VerifyKey != c.want || (len(files) == 1) != (c.want == VerifyKeyFile) {
			t.Errorf("%s: %q, files %v", name, h.Config.VerifyKey, files)
		}
	}
}
