package kube

import (
	"net/http"
	"net/http/httptest"
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
		request := httptest.NewRequest(http.MethodGet, config.Host, nil)
		if proxy, err := config.Proxy(request); proxy != nil || err != nil {
			t.Errorf("%s: the proxy %v, %v", name, proxy, err)
		}
	}
	for others, want := range map[string]string{
		"": "NO_PROXY=192.0.2.1", "example.com": "NO_PROXY=example.com,192.0.2.1",
	} {
		got, err := NoProxy(path, func(name string) string { return map[string]string{"no_proxy": others}[name] })
		if got != want || err != nil {
			t.Errorf("kubectl: got %s, %v", got, err)
		}
	}
}
