package kube

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestConnections: every connection names kube-bootstrap in the API server's audit
// log, and has no limit of requests.
func TestConnections(t *testing.T) {
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"a": {Server: "https://192.0.2.1:6443"}},
		Contexts:       map[string]*clientcmdapi.Context{"a": {Cluster: "a"}},
		CurrentContext: "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "admin.conf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, connect := range map[string]Connect{
		"file": Kubeconfig(path), "bytes": KubeconfigOf(data), "token": Token("192.0.2.1:6443", "abc", nil),
	} {
		config, err := connect()
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != "https://192.0.2.1:6443" || config.UserAgent != "kube-bootstrap" || config.QPS >= 0 {
			t.Errorf("%s: %s, user agent %q, %v requests a second", name, config.Host, config.UserAgent, config.QPS)
		}
	}
}
