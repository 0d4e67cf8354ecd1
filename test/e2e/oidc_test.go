//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/registries"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

const oidcClient = "kubernetes"

// logins lets users of an OpenID provider into a cluster that runs, and refuses
// their tokens once the provider is taken out of the settings.
func logins(t *testing.T, master hosts.Machine) {
	p := newProvider(t, master)
	master.Sh(t, `kube-bootstrap master --oidc-issuer-url `+p.URL+` --oidc-client-id `+oidcClient+
		` --oidc-username-claim email --oidc-username-prefix - --oidc-groups-claim groups --oidc-ca-file `+
		`/root/provider.crt`)
	master.Kubectl(t, "create clusterrolebinding anna --clusterrole view --user anna@example.com")
	anna := p.token(t, map[string]any{"email": "anna@example.com", "groups": []string{"dev", "system:masters"}})
	wait.Until(t, time.Minute, "a login", func() error {
		says, err := asUser(t, master, anna, "auth whoami -o 'jsonpath={.status.userInfo.username} "+
			"{.status.userInfo.groups}'")
		if err == nil && says != `anna@example.com ["oidc:dev","oidc:system:masters","system:authenticated"]` {
			err = errors.New(says)
		}
		return err
	})
	wait.Until(t, time.Minute, "the rights of her binding",
		func() error { _, err := asUser(t, master, anna, "get pods -A"); return err })
	if _, err := asUser(t, master, anna, "get secrets -A"); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("she reads Secrets: %v", err)
	}
	for why, claims := range map[string]map[string]any{
		"another client":   {"email": "anna@example.com", "aud": "another"},
		"expired":          {"email": "anna@example.com", "exp": time.Now().Add(-time.Hour).Unix()},
		"another provider": {"email": "anna@example.com", "iss": "https://other.example.com"},
		"no user":          {},
		"a component":      {"email": "system:kube-scheduler"},
		"the API server":   {"email": "kube-apiserver-kubelet-client"}, // to the kubelets
	} {
		t.Run(why, func(t *testing.T) { refusedLogin(t, master, p.token(t, claims)) })
	}
	master.Kubectl(t, "delete clusterrolebinding anna")
	master.Sh(t, "kube-bootstrap master --oidc-issuer-url= --oidc-client-id= --oidc-username-claim= "+
		"--oidc-username-prefix= --oidc-groups-claim= --oidc-ca= && kube-bootstrap status && rm /root/provider.crt")
	refusedLogin(t, master, anna)
}

func refusedLogin(t *testing.T, master hosts.Machine, token string) {
	t.Helper()
	if says, err := asUser(t, master, token, "auth whoami"); err == nil || !strings.Contains(err.Error(),
		"Unauthorized") {
		t.Errorf("the token is not refused: %v\n%s", err, says)
	}
}

// asUser calls kubectl with a token alone.
func asUser(t *testing.T, master hosts.Machine, token, args string) (string, error) {
	return master.Try(t.Context(), "kubectl --kubeconfig /dev/null --server https://"+master.IP+
		":6443 --certificate-authority /etc/kubernetes/pki/ca.crt --token "+token+" "+args)
}

// provider is an OpenID provider without a page for the login: it hands out the
// tokens that such a page would.
type provider struct {
	*httptest.Server
	signer jose.Signer
	keys   jose.JSONWebKeySet
}

// newProvider serves beside the machine, which gets the certificate of its authority.
func newProvider(t *testing.T, m hosts.Machine) *provider {
	t.Helper()
	ip := m.IP[:strings.LastIndex(m.IP, ".")] + ".1" // the bridge of the test hosts
	r := &registries.Private{Dir: t.TempDir()}
	r.Certificates(t, ip)
	m.Put(t, r.Path("ca.crt"), "/root/provider.crt")
	key := jose.JSONWebKey{Key: r.Pair.PrivateKey, KeyID: "1", Algorithm: string(jose.ES256), Use: "sig"}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	must.NoError(t, err)
	p := &provider{signer: signer, keys: jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key.Public()}}}
	p.Server = registries.ServeTLS(t, ip, r.Pair, p.answer)
	return p
}

func (p *provider) answer(w http.ResponseWriter, r *http.Request) {
	documents := map[string]any{
		"/.well-known/openid-configuration": map[string]any{
			"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/auth",
			"response_types_supported": []string{"id_token"},
			"subject_types_supported": []string{
				"public",
			}, "id_token_signing_alg_values_supported": []jose.SignatureAlgorithm{jose.ES256},
		},
		"/keys": p.keys,
	}
	document, ok := documents[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(document); err != nil {
		fmt.Println(err)
	}
}

// token signs claims, which replace those of a valid token.
func (p *provider) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	now := time.Now()
	valid := map[string]any{
		"iss": p.URL, "aud": oidcClient, "sub": "1", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	token, err := jwt.Signed(p.signer).Claims(valid).Claims(claims).CompactSerialize()
	must.NoError(t, err)
	return token
}
