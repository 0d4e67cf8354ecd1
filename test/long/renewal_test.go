//go:build e2e

package long

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// renewals renews certificates of a cluster of control planes, by hand and by the
// agents, while a worker sends requests.
func renewals(t *testing.T, first, third, worker hosts.Machine) {
	lost := requests(t, worker, ownNode(worker))
	t.Run("by name", func(t *testing.T) {
		was := third.Running(t)
		third.Sh(t, "kube-bootstrap certs renew apiserver admin.conf 2>&1")
		if is := third.Running(t); is != was {
			t.Errorf("programs that do not read it only at their start were started again:\n%s\nthen\n%s", was, is)
		}
	})
	t.Run("by the agent of a control plane", func(t *testing.T) {
		third.Sh(t, stopAgent+request+" && "+strings.ReplaceAll(signSoon, " ca.", " peer-ca.")+
			" && cp /tmp/soon.crt /etc/kubernetes/pki/etcd/flannel.crt")
		renewedByAgent(t, third)
	})
	if out := lost(); out != "" {
		t.Errorf("requests were lost:\n%s", out)
	}
	t.Run("by the agent of a worker", func(t *testing.T) {
		csr := worker.Sh(t, request+" && cat /tmp/soon.csr")
		crt := first.Sh(t, "cat >/tmp/soon.csr <<'EOF'\n"+csr+"\nEOF\n"+signSoon+" && cat /tmp/soon.crt")
		worker.Sh(t, stopAgent+"cat >/etc/kubernetes/pki/etcd/flannel.crt <<'EOF'\n"+crt+"\nEOF")
		renewedByAgent(t, worker)
	})
}

// request asks for flannel's certificate once more, and signSoon, on a control
// plane, issues it so that it expires in ten days.
const (
	request = `cd /etc/kubernetes/pki/etcd && user=$(openssl x509 -in flannel.crt -noout -subject -nameopt multiline |
	sed -n 's/ *commonName *= //p') &&
openssl req -new -key flannel.key -subj "/CN=$user" -out /tmp/soon.csr`
	signSoon = `cd /etc/kubernetes/pki/etcd && echo extendedKeyUsage=clientAuth >/tmp/soon.ext &&
openssl x509 -req -in /tmp/soon.csr -CA ca.crt -CAkey ca.key -not_before 20260101000000Z \
	-not_after $(date -u -d '+10 days' +%Y%m%d%H%M%SZ) -extfile /tmp/soon.ext -out /tmp/soon.crt 2>/dev/null`
)

const stopAgent = "systemctl stop kube-bootstrap-agent; "

// renewedByAgent starts the agent and waits until it has renewed flannel's
// certificate.
func renewedByAgent(t *testing.T, m hosts.Machine) {
	t.Helper()
	at := expiries(t, m)["etcd-flannel"]
	if left := time.Until(at); left > 11*24*time.Hour {
		t.Fatalf("the certificate expires on %s", at)
	}
	if out, err := m.Try(t.Context(), "kube-bootstrap status"); err == nil ||
		!strings.Contains(out, "[certificate-expiry]") {
		t.Errorf("status does not name the certificate, %v:\n%s", err, out)
	}
	m.Sh(t, "systemctl start kube-bootstrap-agent") // it looks at everything once, and then every few minutes
	wait.Until(t, time.Minute, "a new certificate", func() error {
		if is := expiries(t, m)["etcd-flannel"]; !is.After(at.AddDate(0, 6, 0)) {
			return fmt.Errorf("it expires on %s", is)
		}
		return nil
	})
	upToDate(t, m)
}

func upToDate(t *testing.T, m hosts.Machine) {
	t.Helper()
	// A certificate that is due is renewed when the agent looks at everything, every five
	// minutes, and on one control plane after the other.
	hosts.Soon(t, 3*time.Minute, "everything up to date", m, "kube-bootstrap status")
}

// expiries returns when the certificates of a host expire, by their names.
func expiries(t *testing.T, m hosts.Machine) map[string]time.Time {
	t.Helper()
	type listed struct {
		Name    string
		Expires time.Time
	}
	all := map[string]time.Time{}
	for _, one := range hosts.Items[listed](t, m.Sh(t, "kube-bootstrap certs list -o json")) {
		all[one.Name] = one.Expires
	}
	return all
}

// ownNode is what a node asks the API server with its own identity.
func ownNode(m hosts.Machine) string {
	const pair = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	return "--cacert /etc/kubernetes/pki/ca.crt --cert " + pair + " https://127.0.0.1:6440/api/v1/nodes/" + m.Name
}

// requests has a host send requests with curl, ten a second, until the function
// that it returns is called, which returns what failed.
func requests(t *testing.T, m hosts.Machine, curl string) (lost func() string) {
	t.Helper()
	m.Sh(t, `rm -f /run/requests.*; (while [ ! -e /run/requests.stop ]; do
	out=$(curl -sS -f -m 30 -o /dev/null `+curl+` 2>&1) || echo "$(date +%T) $out" >>/run/requests.lost
	echo >>/run/requests.all; sleep 0.1
done) >/dev/null 2>&1 &`)
	return func() string {
		t.Helper()
		t.Logf("%s: %s requests %s", m.Name, m.Sh(t, "touch /run/requests.stop; wc -l </run/requests.all"), curl)
		return m.Sh(t, "cat /run/requests.lost 2>/dev/null || true")
	}
}
