package join

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/cluster-bootstrap/token/util"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestNewToken(t *testing.T) {
	ids := map[string]bool{}
	for _, ttl := range []time.Duration{0, time.Minute, 24 * time.Hour} {
		token := NewToken(ttl, Scope{}, "")
		parsed, err := ParseToken(token.Reveal())
		if err != nil || parsed.Reveal() != token.Reveal() || !util.IsValidBootstrapToken(token.Reveal()) {
			t.Fatalf("%s: %v", token, err)
		}
		if token.Expires.IsZero() != (ttl == 0) || ttl > 0 && time.Until(token.Expires) > ttl {
			t.Errorf("a token for %s expires at %s", ttl, token.Expires)
		}
		ids[token.ID] = true
	}
	if len(ids) != 3 {
		t.Errorf("tokens made in the same second share an id: %v", ids)
	}
}

func TestTokenHidesItsSecret(t *testing.T) {
	token := NewToken(time.Hour, Scope{}, "for a rack")
	asJSON, err := json.Marshal(token)
	must.NoError(t, err)
	wrapped := struct{ T Token }{token}
	for _, text := range []string{
		string(asJSON), token.String(), fmt.Sprintf("%v %+v %#v %s %q", token, token, token, token, token),
		fmt.Sprintf("%v %+v %#v", wrapped, &wrapped, []Token{token}),
	} {
		if strings.Contains(text, token.secret) {
			t.Errorf("the secret shows in %s", text)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	for _, seed := range []string{
		"", "abcdef.0123456789abcdef", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcde", "abcdef.0123456789abcdef\n",
		"äbcdef.0123456789abcdef", "zzzzzz.zzzzzzzzzzzzzzzz",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if valid := util.IsValidBootstrapToken(strings.TrimSpace(text)); valid != (err == nil) {
			t.Fatalf("%q: upstream says %v, we say %v", text, valid, err)
		}
		if err == nil && token.Reveal() != strings.TrimSpace(text) {
			t.Fatalf("%q became %q", text, token.Reveal())
		}
		if err != nil && len(text) > 12 && strings.Contains(err.Error(), text) {
			t.Fatalf("the error repeats the token: %v", err)
		}
	})
}
