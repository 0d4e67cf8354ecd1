// Package join adds a host to a cluster: the token, the proof of identity of both
// sides, and the data that the host receives.
//
//	master: let hosts join           worker: discover
//	  cluster-info, signed ◀──────── TLS to MASTER_IP:6443, chain has the pinned CA
//	  settings (ConfigMap)  ────────▶ only now the token, then cluster-info and its signature
//	  flannel (Secret)      ────────▶ settings, flannel's etcd certificate, kept in files
package join

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/cluster-bootstrap/token/util"
)

// Token lets a host join until it expires. However it is printed, its secret
// stays hidden; only Reveal gives it away.
type Token struct {
	ID          string    `json:"id"`
	Expires     time.Time `json:"expires,omitzero"` // zero: never
	Description string    `json:"description,omitempty"`
	Scope
	UsedBy string `json:"usedBy,omitempty"` // the host that has used it
	secret string
}

// Reveal returns the token as a joining host shows it.
func (t Token) Reveal() string { return t.ID + "." + t.secret }

func (t Token) String() string { return t.ID + ".<hidden>" }

// Format hides the secret from every verb of fmt, %#v among them.
func (t Token) Format(f fmt.State, _ rune) { fmt.Fprint(f, t.String()) }

// ParseToken reads a token as a user gives it.
func ParseToken(text string) (Token, error) {
	parts := util.BootstrapTokenRegexp.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return Token{}, problemNamed("token-format",
			"the token is malformed: it must be 6 letters or digits, a dot and 16 letters or digits, in lower case",
			"copy it as `kube-bootstrap token create` printed it")
	}
	return Token{ID: parts[1], secret: parts[2]}, nil
}

// NewToken makes a token that expires after ttl, to the second, because an API
// server keeps the time so. A ttl of zero is for ever.
func NewToken(ttl time.Duration, scope Scope, description string) Token {
	random, _ := util.GenerateBootstrapToken() // crypto/rand never fails: it ends the program instead
	id, secret, _ := strings.Cut(random, ".")
	token := Token{ID: id, Description: description, Scope: scope, secret: secret}
	if ttl > 0 {
		token.Expires = time.Now().Add(ttl).Truncate(time.Second)
	}
	return token
}
