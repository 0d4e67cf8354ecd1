package controlplane

import (
	_ "embed" // the webhook that does not exist
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// nobody is a webhook that does not exist. A request that is sent there is
// refused, because the failure policy is Deny.
//
//go:embed config/nobody.yaml
var nobody []byte

// RemovedNode is a node that was taken out of the cluster. Kubernetes cannot
// revoke the certificate of a kubelet, so the API server refuses its user.
type RemovedNode struct {
	Name     string
	Accepted []string // certificates of a later node with this name, by their SHA-256
}

// RefuseRemoved has the API server, which follows the file, refuse all requests
// by these nodes and no others. It changes nothing on a host without that file.
func RefuseRemoved(files host.Files, nodes []RemovedNode) error {
	data, err := authorization(nodes)
	if err != nil || !files.Exists(authorizationFile) {
		return err
	}
	return files.Put([]host.File{{Path: authorizationFile, Data: data}})
}

// authorizationFiles keeps the file as it is, if the API server can read it: the
// agent writes the removed nodes into it. The API server does not restart then. The
// agent also writes them into a new file.
func authorizationFiles(files host.Files) ([]host.File, error) {
	data, err := files.Read(authorizationFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil || !readable(data) {
		data, err = authorization(nil)
	}
	return []host.File{{Path: authorizationFile, Data: data}, {Path: nobodyFile, Data: nobody}}, err
}

// readable reports whether an API server can read a file: earlier releases wrote
// conditions that are too long.
func readable(data []byte) bool {
	var config apiserverv1.AuthorizationConfiguration
	if yaml.UnmarshalStrict(data, &config) != nil || len(config.Authorizers) < 2 {
		return false
	}
	for _, a := range config.Authorizers {
		if a.Webhook == nil {
			continue
		}
		if slices.ContainsFunc(a.Webhook.MatchConditions,
			func(c apiserverv1.WebhookMatchCondition) bool { return len(c.Expression) > longestCondition }) {
			return false
		}
	}
	return true
}

// authorization configures the authorizers Node and RBAC, and webhooks that refuse
// removed nodes.
func authorization(removed []RemovedNode) ([]byte, error) {
	var authorizers []apiserverv1.AuthorizerConfiguration
	for i, nodes := range divide(removed) {
		name := "removed-nodes"
		if i > 0 {
			name = fmt.Sprintf("removed-nodes-%d", i+1)
		}
		authorizers = append(authorizers, refuse(name, condition(nodes)))
	}
	return yaml.Marshal(apiserverv1.AuthorizationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiserver.config.k8s.io/v1", Kind: "AuthorizationConfiguration"},
		Authorizers: append(authorizers, apiserverv1.AuthorizerConfiguration{Type: "Node", Name: "node"},
			apiserverv1.AuthorizerConfiguration{Type: "RBAC", Name: "rbac"}),
	})
}

// longestCondition is the most bytes of a condition. The API server accepts 100,000, and more
// stop it at its start.
// https://github.com/google/cel-go/blob/v0.29.2/parser/parser.go#L69-L71
const longestCondition = 50_000

// MostAccepted is the most certificates of one node that are accepted. All of them must
// be in the condition that contains the node.
const MostAccepted = 64

// divide divides the nodes so that the condition of each part is not too long.
func divide(removed []RemovedNode) (parts [][]RemovedNode) {
	size := longestCondition
	for _, n := range removed {
		n.Accepted = n.Accepted[max(0, len(n.Accepted)-MostAccepted):]
		if more := len(condition([]RemovedNode{n})); size+more > longestCondition {
			parts, size = append(parts, nil), more
		} else {
			size += more
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], n)
	}
	return parts
}

func refuse(name, condition string) apiserverv1.AuthorizerConfiguration {
	second := metav1.Duration{Duration: time.Second}
	return apiserverv1.AuthorizerConfiguration{Type: "Webhook", Name: name, Webhook: &apiserverv1.WebhookConfiguration{
		AuthorizedTTL: second, UnauthorizedTTL: second, Timeout: second,
		SubjectAccessReviewVersion: "v1", MatchConditionSubjectAccessReviewVersion: "v1",
		FailurePolicy: apiserverv1.FailurePolicyDeny,
		ConnectionInfo: apiserverv1.WebhookConnectionInfo{
			Type: apiserverv1.AuthorizationWebhookConnectionInfoTypeKubeConfigFile, KubeConfigFile: new(nobodyFile),
		},
		MatchConditions: []apiserverv1.WebhookMatchCondition{{Expression: condition}},
	}}
}

// condition is true for a request by one of the nodes with a certificate that is not
// accepted. The API server looks a value up in a list of constants as in a set.
func condition(nodes []RemovedNode) string {
	const id = "'" + user.CredentialIDKey + "'"
	var names, accepted []string
	for _, n := range nodes {
		name := "system:node:" + n.Name
		names = append(names, fmt.Sprintf("%q", name))
		for _, c := range n.Accepted {
			accepted = append(accepted, fmt.Sprintf("%q", name+" X509SHA256="+c))
		}
	}
	is := "request.user in [" + strings.Join(names, ", ") + "]"
	if len(accepted) == 0 {
		return is
	}
	return fmt.Sprintf("%s && !(has(request.extra) && %s in request.extra && request.extra[%s].exists(c, "+
		"request.user + ' ' + c in [%s]))",
		is, id, id, strings.Join(accepted, ", "))
}
