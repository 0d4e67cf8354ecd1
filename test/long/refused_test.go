//go:build e2e

package long

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

func refused(t *testing.T, m hosts.Machine, line, problem string) {
	t.Helper()
	out := m.Sh(t, "{ "+line+"; } 2>&1; echo exit $?")
	if !strings.HasSuffix(out, "exit 3") || !strings.Contains(out, "["+problem+"]") ||
		!strings.Contains(out, "nothing was changed") {
		t.Errorf("want problem %s and exit 3, got:\n%s", problem, out)
	}
}

// refusedJoins tries to join a bare host in every way that must fail: each has
// an error of its own, and leaves the host as it was.
func refusedJoins(t *testing.T, master, bare hosts.Machine, bundle string) {
	t.Helper()
	good, short := clusters.NewToken(t, master), clusters.NewToken(t, master, "--ttl", "1s")
	id, _, _ := strings.Cut(good.Token, ".")
	before := bare.World(t)
	with := func(change func(*clusters.JoinToken)) clusters.JoinToken { j := good; change(&j); return j }
	stop := impostor(t, bare)
	for _, c := range []struct {
		name, problem string
		join          clusters.JoinToken
	}{
		{"wrong token", "token-unknown", with(func(j *clusters.JoinToken) { j.Token = id + ".0123456789abcdef" })},
		{"unknown token", "token-unknown", with(func(j *clusters.JoinToken) { j.Token = "zzzzzz.0123456789abcdef" })},
		{
			"wrong CA hash", "ca-cert-hash", with(func(j *clusters.JoinToken) {
				j.CACertHash = "sha256:" +
					strings.Repeat("0", 64)
			}),
		},
		{"man in the middle", "ca-cert-hash", with(func(j *clusters.JoinToken) { j.MasterIP = bare.IP })},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, bare, c.join.Line(bundle), c.problem) })
	}
	stop()
	t.Run("unreachable master", func(t *testing.T) {
		refused(t, bare, with(func(j *clusters.JoinToken) { j.MasterIP = bare.IP }).Line(bundle), "control-plane-unreachable")
	})
	t.Run("expired token", func(t *testing.T) {
		time.Sleep(time.Until(short.Expires.Add(time.Second)))
		refused(t, bare, short.Line(bundle), "token-unknown")
	})
	bare.SameWorld(t, "a join that was refused", before)
}

// impostor answers on the machine itself, in a master's place, with a
// certificate authority of its own.
func impostor(t *testing.T, m hosts.Machine) (stop func()) {
	t.Helper()
	pid := m.Sh(t,
		`cd /tmp && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout mitm.key -out `+
			`mitm.crt -days 1 -subj /CN=kubernetes -addext subjectAltName=IP:`+m.IP+` 2>/dev/null
openssl s_server -accept 6443 -cert mitm.crt -key mitm.key -quiet >/dev/null 2>&1 </dev/null & echo $!
until ss -Hltn sport = 6443 | grep -q .; do sleep 0.05; done`)
	return func() { m.Sh(t, "kill "+pid+"; rm -f /tmp/mitm.key /tmp/mitm.crt") }
}

// otherRole tries each verb on a host that has the other role.
func otherRole(t *testing.T, master, worker hosts.Machine, bundle string) {
	for _, c := range []struct {
		on        hosts.Machine
		Local, is string
	}{{worker, hosts.AsMaster, "worker"}, {master, hosts.AsWorker + "--master-ip " + master.IP, "master"}} {
		was := c.on.Running(t)
		code, says := c.on.Ask(t, "", c.Local, bundle)
		if want := "this host is already a " + c.is; code != "3" || !strings.Contains(says, want) {
			t.Errorf("%s: exit code %s, want 3 and %q:\n%s", c.on.Name, code, want, says)
		}
		if is := c.on.Running(t); is != was {
			t.Errorf("%s: the verb of another role restarted something:\n%s\nthen\n%s", c.on.Name, was, is)
		}
	}
}
