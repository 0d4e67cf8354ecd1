package clusters

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// JoinToken is what `token create` prints.
type JoinToken struct {
	Token, CACertHash, MasterIP, CertificateKey string
	Expires                                     time.Time
}

// NewToken creates a token on a control plane.
func NewToken(t *testing.T, master hosts.Machine, args ...string) JoinToken {
	t.Helper()
	var token JoinToken
	must.NoError(t, json.Unmarshal([]byte(master.Sh(t, "kube-bootstrap token create -o json "+strings.Join(args, " "))),
		&token))
	return token
}

// Line is the command that makes a host a worker.
func (j JoinToken) Line(bundle string) string {
	return fmt.Sprintf("KUBE_BOOTSTRAP_TOKEN=%s kube-bootstrap worker --master-ip %s --ca-cert-hash %s --bundle %s",
		j.Token, j.MasterIP, j.CACertHash, bundle)
}

// ControlPlaneLine is the command that makes a host a further control plane, as `token create`
// prints it: without a bundle.
func (j JoinToken) ControlPlaneLine() string {
	return fmt.Sprintf("KUBE_BOOTSTRAP_TOKEN=%s KUBE_BOOTSTRAP_CERTIFICATE_KEY=%s kube-bootstrap master --join "+
		"--master-ip %s --ca-cert-hash %s",
		j.Token, j.CertificateKey, j.MasterIP, j.CACertHash)
}
