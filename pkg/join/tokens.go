package join

import (
	"context"
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

// CreateToken makes a token known to the API server. A ttl of zero is for ever.
func CreateToken(ctx context.Context, client kubernetes.Interface, ttl time.Duration, scope Scope, description string) (Token, error) {
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

// createSecret creates the secret of a token. It makes another token when one
// with the same random id exists.
func createSecret(ctx context.Context, client kubernetes.Interface, make func() *corev1.Secret) (*corev1.Secret, error) {
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
	if err := client.CoreV1().Secrets(system).Delete(ctx, util.BootstrapTokenSecretName(id), metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete token %s: %w", id, err)
	}
	return nil
}

// JoinCommand returns the command to run on a worker that joins. It passes the token
// in the environment, because every user can list the arguments of a process.
func JoinCommand(masterIP string, token Token, caHash string) string {
	return fmt.Sprintf("KUBE_BOOTSTRAP_TOKEN=%s kube-bootstrap worker --master-ip %s --ca-cert-hash %s", token.Reveal(), masterIP, caHash)
}

// ControlPlaneCommand returns the command to run on a further control plane.
func ControlPlaneCommand(masterIP string, token Token, caHash string, key certkey.Key) string {
	return fmt.Sprintf("KUBE_BOOTSTRAP_TOKEN=%s KUBE_BOOTSTRAP_CERTIFICATE_KEY=%s kube-bootstrap master --join --master-ip %s --ca-cert-hash %s",
		token.Reveal(), key.Reveal(), masterIP, caHash)
}
