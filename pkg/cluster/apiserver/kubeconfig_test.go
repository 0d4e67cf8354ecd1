package apiserver

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestKubeconfigPointsAtTheServer(t *testing.T) {
	const given = "apiVersion: v1\nkind: Config\nclusters:\n- name: kubernetes\n  cluster: {server: 'https://127.0.0.1:7443'}\n"
	got, err := withServer([]byte(given), "https://127.0.0.1:33001")
	must.NoError(t, err)
	for _, want := range []string{"server: https://127.0.0.1:33001", "tls-server-name: kubernetes"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
