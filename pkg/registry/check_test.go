package registry

import (
	"net/http"
	"testing"
)

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
