package kubelet

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAnExpiredCertificateHasNotJoined: a host that joins again with a token waits for
// its new certificate, because the next steps remove the token.
func TestAnExpiredCertificateHasNotJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := fresh(t, true).Identity
		must.NoError(t, i.write(t.Context(), stopped))
		joined := Kubelet{Identity: i}.Joined()
		for _, want := range []string{"", "expired"} {
			diff, err := joined.Check(t.Context())
			if err != nil || len(diff) > 0 != (want != "") || !strings.Contains(diff.String(), want) {
				t.Errorf("got %q, %v, want %q", diff, err, want)
			}
			time.Sleep(2 * pki.LeafLife)
		}
	})
}
