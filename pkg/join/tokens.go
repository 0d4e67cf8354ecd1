// Package join adds a host to a cluster: the token, the proof of identity of both sides, and the data that the
// host receives.
//
//	control plane: let hosts join    worker: discover
//	  cluster-info, signed ◀──────── TLS to MASTER_IP:6443, chain has the pinned CA
//	  settings (ConfigMap)  ────────▶ only now the token, then cluster-info and its signature
//	  flannel (Secret)      ────────▶ settings, flannel's etcd certificate, kept in files
package join

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	bootstrap "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/util"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/join/certkey"
)

const system = metav1.NamespaceSystem

// Token lets a host join until it expires. However it is printed, its secret stays hidden; only Reveal gives it
// away.
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

// NewToken makes a token that expires after ttl, to the second, because an API server keeps the time so. A ttl
// of zero is for ever.
func NewToken(ttl time.Duration, scope Scope, description string) Token {
	random, _ := util.GenerateBootstrapToken() // crypto/rand never fails: it ends the program instead
	id, secret, _ := strings.Cut(random, ".")
	token := Token{ID: id, Description: description, Scope: scope, secret: secret}
	if ttl > 0 {
		token.Expires = time.Now().Add(ttl).Truncate(time.Second)
	}
	return token
}

// CreateToken makes a token known to the API server. A ttl of zero is for ever.
func CreateToken(
	ctx context.Context, client kubernetes.Interface, ttl time.Duration, scope Scope, description string,
) (Token, error) {
	var token Token
	for _, group := range scope.groups() {
		if err := util.ValidateBootstrapGroupName(group); err != nil {
			return token, fmt.Errorf("create a token for node %q: %w", scope.Node, err)
		}
	}
	_, err := createSecret(ctx, client, func() *corev1.Secret {
		token = NewToken(ttl, scope, description)
		return secretOf(token)
	})
	return token, err
}

// createSecret creates the secret of a token, and another one if its id exists.
func createSecret(
	ctx context.Context, client kubernetes.Interface, make func() *corev1.Secret,
) (*corev1.Secret, error) {
	for {
		secret, err := client.CoreV1().Secrets(system).Create(ctx, make(), metav1.CreateOptions{})
		if err == nil {
			return secret, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("create token: %w", err)
		}
	}
}

func secretOf(t Token) *corev1.Secret {
	data := map[string]string{
		bootstrap.BootstrapTokenIDKey:               t.ID,
		bootstrap.BootstrapTokenSecretKey:           t.secret,
		bootstrap.BootstrapTokenDescriptionKey:      t.Description,
		bootstrap.BootstrapTokenUsageSigningKey:     "true",
		bootstrap.BootstrapTokenUsageAuthentication: "true",
		bootstrap.BootstrapTokenExtraGroupsKey:      strings.Join(t.groups(), ","),
	}
	if !t.Expires.IsZero() {
		data[bootstrap.BootstrapTokenExpirationKey] = t.Expires.UTC().Format(time.RFC3339)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: util.BootstrapTokenSecretName(t.ID), Namespace: system},
		Type:       bootstrap.SecretTypeBootstrapToken,
		StringData: data,
	}
}

// ListTokens returns the tokens that the API server knows.
func ListTokens(ctx context.Context, client kubernetes.Interface) ([]Token, error) {
	byType := metav1.ListOptions{FieldSelector: "type=" + string(bootstrap.SecretTypeBootstrapToken)}
	secrets, err := client.CoreV1().Secrets(system).List(ctx, byType)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	var tokens []Token
	for i := range secrets.Items {
		tokens = append(tokens, tokenIn(&secrets.Items[i]))
	}
	return tokens, nil
}

func tokenIn(secret *corev1.Secret) Token {
	data := secret.Data
	token := Token{
		ID:          string(data[bootstrap.BootstrapTokenIDKey]),
		Description: string(data[bootstrap.BootstrapTokenDescriptionKey]),
		Scope:       scopeOf(strings.Split(string(data[bootstrap.BootstrapTokenExtraGroupsKey]), ",")),
		UsedBy:      secret.Annotations[usedBy],
		secret:      string(data[bootstrap.BootstrapTokenSecretKey]),
	}
	token.Expires, _ = time.Parse(time.RFC3339, string(data[bootstrap.BootstrapTokenExpirationKey]))
	return token
}

// DeleteToken deletes a token, by its id or by the complete token.
func DeleteToken(ctx context.Context, client kubernetes.Interface, idOrToken string) error {
	id := idOrToken
	if token, err := ParseToken(idOrToken); err == nil {
		id = token.ID
	}
	if !util.IsValidBootstrapTokenID(id) {
		return fmt.Errorf("delete token: %w", problemNamed("token-format",
			"the token id is malformed: it must be 6 letters or digits in lower case",
			"take it from `kube-bootstrap token list`"))
	}
	if err := client.CoreV1().Secrets(system).Delete(ctx, util.BootstrapTokenSecretName(id),
		metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete token %s: %w", id, err)
	}
	return nil
}

// JoinCommand returns the command to run on a worker that joins. It passes the token in the environment,
// because every user can list the arguments of a process.
func JoinCommand(serverIP string, token Token, caHash string) string {
	return fmt.Sprintf("KUBE_BOOTSTRAP_TOKEN=%s kube-bootstrap worker --master-ip %s --ca-cert-hash %s", token.Reveal(),
		serverIP, caHash)
}

// ControlPlaneCommand returns the command to run on a further control plane.
func ControlPlaneCommand(serverIP string, token Token, caHash string, key certkey.Key) string {
	return fmt.Sprintf("KUBE_BOOTSTRAP_TOKEN=%s KUBE_BOOTSTRAP_CERTIFICATE_KEY=%s kube-bootstrap master --join "+
		"--master-ip %s --ca-cert-hash %s",
		token.Reveal(), key.Reveal(), serverIP, caHash)
}

// HostKind is the kind of host that a token lets in.
type HostKind string

const (
	ForWorker       HostKind = "worker"
	ForControlPlane HostKind = "control-plane"
)

// Scope is what a token is for. The API server adds it, as groups, to every request that is made with the
// token.
type Scope struct {
	Kind     HostKind `json:"kind,omitempty"` // "" lets no host in
	Node     string   `json:"node,omitempty"` // the only node it is for; "" is any node that does not exist yet
	Reusable bool     `json:"reusable,omitempty"`
}

const (
	groups            = "system:bootstrappers:kube-bootstrap:"
	workerGroup       = groups + string(ForWorker)
	controlPlaneGroup = groups + string(ForControlPlane)
	reusableGroup     = groups + "reusable"
	nodeGroup         = groups + "node:"
)

// A group must not contain dots, and the name of a node no colons.
var (
	toGroup = strings.NewReplacer(".", ":")
	toNode  = strings.NewReplacer(":", ".")
)

func (s Scope) groups() []string {
	all := []string{groups + string(s.Kind)}
	if s.Node != "" {
		all = append(all, nodeGroup+toGroup.Replace(s.Node))
	}
	if s.Reusable {
		all = append(all, reusableGroup)
	}
	return all
}

func scopeOf(groups []string) (s Scope) {
	for _, group := range groups {
		switch node, isNode := strings.CutPrefix(group, nodeGroup); {
		case group == workerGroup:
			s.Kind = ForWorker
		case group == controlPlaneGroup:
			s.Kind = ForControlPlane
		case group == reusableGroup:
			s.Reusable = true
		case isNode:
			s.Node = toNode.Replace(node)
		}
	}
	return s
}

// refuses returns the reason why the token does not admit host as a worker, or nil. known states whether the
// cluster has a node of that name. That node is most likely another host, so its name needs a token for that
// node.
func (s Scope) refuses(host string, known bool) error {
	switch {
	case s.Kind != ForWorker:
		return errors.New("the token is not for workers")
	case s.Node != "" && s.Node != host:
		return fmt.Errorf("the token is for node %s, and not for %s", s.Node, host)
	case s.Node == "" && known:
		return fmt.Errorf("the cluster has a node %s already, and the token is not for that node", host)
	}
	return nil
}
