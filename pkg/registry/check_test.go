package registry

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestExplainOfNames: only a name that the name server denies is wrong.
func TestExplainOfNames(t *testing.T) {
	for want, err := range map[string]net.DNSError{
		"host registry.example.com does not exist": {Name: "registry.example.com", Err: "no such host",
			IsNotFound: true},
		"needs the host proxy.example.com, which does not exist": {Name: "proxy.example.com", Err: "no such host",
			IsNotFound: true},
		"cannot be resolved: i/o timeout": {Name: "registry.example.com", Err: "i/o timeout", IsTimeout: true},
		"cannot be resolved: server misbehaving": {Name: "registry.example.com", Err: "server misbehaving",
			IsTemporary: true},
	} {
		for _, address := range []string{"registry.example.com:5000/k8s", "registry.example.com"} {
			r := Registry{Address: address}
			got := r.Explain(fmt.Errorf("get: %w", &err))
			if !strings.Contains(got.Error(), want) ||
				strings.Contains(got.Error(), "check the name server") == err.IsNotFound {
				t.Errorf("%s: got %v, want %s", address, got, want)
			}
		}
	}
}

// TestUnusedConnectionsEnd: nobody closes the connections of a registry.
func TestUnusedConnectionsEnd(t *testing.T) {
	r := Registry{Address: "registry.example.com"}
	made, err := r.transport()
	must.NoError(t, err)
	if made.(*http.Transport).IdleConnTimeout == 0 {
		t.Error("they stay open for ever")
	}
}

// TestCheckNotesBasicAuth: only a registry that asks for the password itself
// needs no credentials for a token server.
func TestCheckNotesBasicAuth(t *testing.T) {
	for challenge, want := range map[string]bool{
		`Basic realm="registry"`: true, `basic realm="registry"`: true, "": false,
		`Bearer realm="http://192.0.2.1/token",service="registry"`: false,
	} {
		r := serve(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if challenge != "" && request.Header.Get("Authorization") == "" {
					w.Header().Set("WWW-Authenticate", challenge)
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				h.ServeHTTP(w, request)
			})
		})
		r.Auth.Username, r.Auth.Password, r.BasicAuth = "me", "secret", !want
		err := r.Check(t.Context(), "pause", false)
		if r.BasicAuth != want || want && err != nil {
			t.Errorf("%q: basic %t, %v", challenge, r.BasicAuth, err)
		}
		known := Registry{Address: r.Address}
		if known.Complete(r); known.BasicAuth != want {
			t.Errorf("%q: a later run does not know the result", challenge)
		}
	}
}
