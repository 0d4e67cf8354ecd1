package addon

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestFlannelIsValid(t *testing.T) {
	text, err := with(Values{FlannelImage: "flannel:v1", Backend: "host-gw",
		PodCIDR: netip.MustParsePrefix("10.1.0.0/16"), Server: "https://10.0.0.1:6443"}).Flannel()
	must.NoError(t, err)
	if err := CheckManifest(text); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`"Type": "host-gw"`, "image: flannel:v1", `value: "10.0.0.1"`, `value: "6443"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestCheckManifest(t *testing.T) {
	for text, good := range map[string]bool{
		"kind: Namespace\napiVersion: v1\nmetadata: {name: a}\n": true, "": false, "kind: [": false,
		"<html></html>": false,
	} {
		if err := CheckManifest([]byte(text)); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDownload(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/net.yaml" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("hello"))
	}))
	defer server.Close()
	const sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	for path, good := range map[string]bool{
		"/net.yaml": false, "/net.yaml#sha256:" + sum: true, "/net.yaml#sha256:" + strings.Repeat("0", 64): false,
		"/other": false,
	} {
		data, err := Download(t.Context(), server.URL+path)
		if (err == nil) != good || good && string(data) != "hello" {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}
