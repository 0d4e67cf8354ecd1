package apiserver

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const admin = `apiVersion: v1
kind: Config
clusters:
- name: kubernetes
  cluster: {server: 'https://127.0.0.1:7443', certificate-authority-data: QQ==, proxy-url: 'http://192.0.2.1:3128'}
contexts:
- name: admin@kubernetes
  context: {cluster: kubernetes, user: admin}
current-context: admin@kubernetes
users:
- name: admin
  user:
    client-certificate-data: Qg==
    client-key-data: Qw==
    exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/evil, interactiveMode: Never}
    tokenFile: /home/user/.token
- name: other
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/evil, interactiveMode: Never}}
`

func TestKubeconfigPointsAtTheServer(t *testing.T) {
	got, err := withServer([]byte(admin), "https://127.0.0.1:33001")
	must.NoError(t, err)
	for _, want := range []string{
		"server: https://127.0.0.1:33001", "tls-server-name: kubernetes", "certificate-authority-data: QQ==",
		"client-certificate-data: Qg==",
		"client-key-data: Qw==", "current-context: admin@kubernetes",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestKubeconfigRunsNothingHere: root of a node could write these.
func TestKubeconfigRunsNothingHere(t *testing.T) {
	got, err := withServer([]byte(admin), "https://127.0.0.1:33001")
	must.NoError(t, err)
	for _, refused := range []string{"exec", "evil", "token", "proxy", "other"} {
		if strings.Contains(string(got), refused) {
			t.Errorf("%q in\n%s", refused, got)
		}
	}
	for _, missing := range []string{
		"client-key-data: Qw==", "certificate-authority-data: QQ==, ", "current-context: admin@kubernetes",
	} {
		if _, err := withServer([]byte(strings.Replace(admin, missing, "", 1)),
			"https://127.0.0.1:33001"); err == nil || !strings.Contains(err.Error(), "run `kube-bootstrap master`") {
			t.Errorf("without %q: %v", missing, err)
		}
	}
}
