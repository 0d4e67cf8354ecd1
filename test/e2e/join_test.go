//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

type joinToken struct {
	Token, CACertHash, MasterIP, CertificateKey string
	Expires                                     time.Time
	as                                          string // arguments of curl with another credential than Token
}

func newToken(t *testing.T, master machine, args ...string) joinToken {
	t.Helper()
	var token joinToken
	must.NoError(t, json.Unmarshal([]byte(master.sh(t, "kube-bootstrap token create -o json "+strings.Join(args, " "))), &token))
	return token
}

// joinLine is the command that makes a host a worker.
func (j joinToken) line(bundle string) string {
	return fmt.Sprintf("KUBE_BOOTSTRAP_TOKEN=%s kube-bootstrap worker --master-ip %s --ca-cert-hash %s --bundle %s", j.Token, j.MasterIP, j.CACertHash, bundle)
}

// refusedJoins tries to join a bare host in every way that must fail: each has
// an error of its own, and leaves the host as it was.
func refusedJoins(t *testing.T, master, bare machine, bundle string) {
	t.Helper()
	good, short := newToken(t, master), newToken(t, master, "--ttl", "1s")
	id, _, _ := strings.Cut(good.Token, ".")
	before := bare.world(t)
	with := func(change func(*joinToken)) joinToken { j := good; change(&j); return j }
	stop := impostor(t, bare)
	for _, c := range []struct {
		name, problem string
		join          joinToken
	}{
		{"wrong token", "token-unknown", with(func(j *joinToken) { j.Token = id + ".0123456789abcdef" })},
		{"unknown token", "token-unknown", with(func(j *joinToken) { j.Token = "zzzzzz.0123456789abcdef" })},
		{"wrong CA hash", "ca-cert-hash", with(func(j *joinToken) { j.CACertHash = "sha256:" + strings.Repeat("0", 64) })},
		{"man in the middle", "ca-cert-hash", with(func(j *joinToken) { j.MasterIP = bare.ip })},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, bare, c.join.line(bundle), c.problem) })
	}
	stop()
	t.Run("unreachable master", func(t *testing.T) {
		refused(t, bare, with(func(j *joinToken) { j.MasterIP = bare.ip }).line(bundle), "control-plane-unreachable")
	})
	t.Run("expired token", func(t *testing.T) {
		time.Sleep(time.Until(short.Expires.Add(time.Second)))
		refused(t, bare, short.line(bundle), "token-unknown")
	})
	bare.sameWorld(t, "a join that was refused", before)
}

func refused(t *testing.T, m machine, line, problem string) {
	t.Helper()
	out := m.sh(t, "{ "+line+"; } 2>&1; echo exit $?")
	if !strings.HasSuffix(out, "exit 3") || !strings.Contains(out, "["+problem+"]") || !strings.Contains(out, "nothing was changed") {
		t.Errorf("want problem %s and exit 3, got:\n%s", problem, out)
	}
}

// impostor answers on the machine itself, in a master's place, with a
// certificate authority of its own.
func impostor(t *testing.T, m machine) (stop func()) {
	t.Helper()
	pid := m.sh(t, `cd /tmp && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout mitm.key -out mitm.crt -days 1 -subj /CN=kubernetes -addext subjectAltName=IP:`+m.ip+` 2>/dev/null
openssl s_server -accept 6443 -cert mitm.crt -key mitm.key -quiet >/dev/null 2>&1 </dev/null & echo $!; until ss -Hltn sport = 6443 | grep -q .; do sleep 0.05; done`)
	return func() { m.sh(t, "kill "+pid+"; rm -f /tmp/mitm.key /tmp/mitm.crt") }
}
