//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// code is what an HTTPS server answers to somebody without a name. A server that is busy may
// give no answer, or say that it is not ready, for a moment.
func code(t *testing.T, m hosts.Machine, url string) (answer string) {
	t.Helper()
	wait.Until(t, 30*time.Second, "an answer of "+url, func() error {
		if answer = codeNow(t, m, url); answer == "" || strings.HasPrefix(answer, "5") {
			return fmt.Errorf("it answers %q", answer)
		}
		return nil
	})
	return answer
}

func codeNow(t *testing.T, m hosts.Machine, url string) string {
	t.Helper()
	return m.Sh(t, `printf 'GET /`+url[strings.Index(url, "/")+1:]+
		` HTTP/1.0\r\n\r\n' | timeout 60 openssl s_client -quiet -connect `+url[:strings.Index(url, "/")]+
		` 2>/dev/null | head -1 | tr -d '\r' | cut -d' ' -f2`)
}

func anonymousKubelet(t *testing.T, m hosts.Machine) {
	t.Helper()
	for _, path := range []string{"pods", "metrics", "configz", "logs/", "healthz", "exec/kube-system/x/x"} {
		if got := code(t, m, m.IP+":10250/"+path); got != "401" {
			t.Errorf("the kubelet answers %s to anonymous /%s", got, path)
		}
	}
	if out, _ := m.Try(t.Context(), "ss -ltn | grep ':10255 '"); out != "" {
		t.Errorf("the kubelet's read-only port is open: %s", out)
	}
}

func anonymousAPI(t *testing.T, master hosts.Machine) {
	t.Helper()
	for path, want := range map[string]string{
		"livez": "200", "readyz": "200", "healthz": "200", "": "401", "api": "401", "apis": "401", "metrics": "401",
		"version":                               "401",
		"api/v1/namespaces/kube-system/secrets": "401", "api/v1/namespaces/kube-public/configmaps/cluster-info": "401",
	} {
		if got := code(t, master, master.IP+":6443/"+path); got != want && (want != "401" || got != "403") {
			t.Errorf("the API server answers %s to anonymous /%s, want %s", got, path, want)
		}
	}
	// A line contains the URL, so that strangers could fill the log.
	if out := master.Sh(t, `cat /var/log/kubernetes/audit/*.log | grep '"code":401' | tail -1`); out != "" {
		t.Errorf("the audit log has a request without a credential: %s", out)
	}
}
