//go:build e2e

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// compromised removes a worker that somebody else controls and that still answers.
func compromised(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	opens := stolenDisk(t, master, worker)
	if all := opens(); len(all) < 4 {
		t.Errorf("the keys of a worker open only %q", all)
	}
	if out, err := master.Try(t.Context(), "kube-bootstrap forget "+worker.Name+" 2>&1"); err == nil ||
		!strings.Contains(out, "[node-alive]") {
		t.Errorf("forget takes a host that answers for a dead one: %v\n%s", err, out)
	}
	master.Sh(t, "kube-bootstrap forget --compromised "+worker.Name)
	closed(t, opens)
}

// closed expects that the keys of a worker open nothing soon.
func closed(t *testing.T, opens func() []string) {
	t.Helper()
	wait.Until(t, 20*time.Second, "nothing opens", func() error {
		if all := opens(); len(all) > 0 {
			return errors.New(strings.Join(all, ", "))
		}
		return nil
	})
}

// stolenDisk reads every key from the disk of a worker that runs. What it returns
// tells what these keys open.
func stolenDisk(t *testing.T, master, worker hosts.Machine) (opens func() []string) {
	t.Helper()
	shown := map[string]tls.Certificate{}
	// A file may go before grep reads it.
	const keys = "find /etc/kubernetes /var/lib/kubelet/pki /var/lib/kube-bootstrap /root -xdev -type f -size -1000k " +
		"| { xargs grep -lsI -e '^-----BEGIN .*PRIVATE KEY-----' || true; }"
	for _, path := range strings.Fields(worker.Sh(t, keys)) {
		text := worker.Sh(t, "cat "+path+" "+strings.TrimSuffix(path, ".key")+".crt 2>/dev/null || true")
		pair, err := tls.X509KeyPair([]byte(text), []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		shown[path] = pair
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(worker.Sh(t, "cat "+clusters.PKIDir+"/ca.crt")))
	return func() (all []string) {
		for path, pair := range shown {
			api := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
				TLSClientConfig: &tls.Config{
					RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
				}, DisableKeepAlives: true,
			}}
			for _, what := range []string{
				"api/v1/nodes/" + worker.Name, "api/v1/services",
				"apis/certificates.k8s.io/v1/certificatesigningrequests",
			} {
				answer, err := api.Get("https://" + master.IP + ":6443/" + what)
				if err != nil {
					continue // this server does not know the authority of the certificate
				}
				answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					all = append(all, path+" opens "+what)
				}
			}
			if strings.Contains(path, "/etcd/") {
				client := clusters.DialEtcd(t, master, clusters.GatePort, []tls.Certificate{pair})
				for _, key := range []string{
					"/coreos.com/network/config", "/kube-bootstrap/control-planes/" + master.Name,
				} {
					if _, err := client.Get(t.Context(), key); !isDenied(err) {
						all = append(all, path+" opens "+key+" of etcd")
					}
				}
				if _, err := client.Grant(t.Context(), 60); !isDenied(err) {
					all = append(all, path+" gets a lease of etcd")
				}
			}
		}
		return all
	}
}
