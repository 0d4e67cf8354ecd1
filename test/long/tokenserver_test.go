//go:build e2e

package long

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/registries"
)

const (
	tokenIssuer  = "issuer of the test"
	tokenService = "registry of the test"
)

// tokenServer is where a registry sends who wants in: users and passwords go
// there alone, and the registry sees only what is signed here.
type tokenServer struct {
	*httptest.Server
	signer jose.Signer
	given  atomic.Int32
}

// newTokenServer serves at an address, with a certificate that also signs.
func newTokenServer(t *testing.T, ip string, pair tls.Certificate) *tokenServer {
	t.Helper()
	chain := []string{base64.StdEncoding.EncodeToString(pair.Certificate[0])}
	signer, err := jose.NewSigner(jose.SigningKey{
		Algorithm: jose.ES256, Key: pair.PrivateKey,
	}, (&jose.SignerOptions{}).WithHeader("x5c", chain).WithType("JWT"))
	must.NoError(t, err)
	s := &tokenServer{signer: signer}
	s.Server = registries.ServeTLS(t, ip, pair, s.give)
	return s
}

// access is what a token lets its bearer do.
type access struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Actions []string `json:"actions"`
}

func (s *tokenServer) give(w http.ResponseWriter, r *http.Request) {
	name, password, _ := r.BasicAuth()
	if name != registries.PrivateUser || password != registries.PrivatePassword {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	token, err := s.token(scopes(r.URL.Query()["scope"]))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.given.Add(1)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "expires_in": 300})
}

// scopes reads "repository:k8s/pause:pull,push".
func scopes(asked []string) (all []access) {
	for _, scope := range strings.Fields(strings.Join(asked, " ")) {
		if parts := strings.Split(scope, ":"); len(parts) == 3 {
			all = append(all, access{parts[0], parts[1], strings.Split(parts[2], ",")})
		}
	}
	return all
}

func (s *tokenServer) token(to []access) (string, error) {
	now := time.Now()
	claims := map[string]any{
		"iss": tokenIssuer, "sub": registries.PrivateUser, "aud": tokenService, "access": to,
		"iat": now.Unix(), "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}
	return jwt.Signed(s.signer).Claims(claims).CompactSerialize()
}
