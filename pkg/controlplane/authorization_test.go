package controlplane

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/cel"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestRemovedNodesAreRefused evaluates the condition as the API server does.
func TestRemovedNodesAreRefused(t *testing.T) {
	data, err := authorization([]RemovedNode{{Name: "gone"}, {Name: "back", Accepted: []string{"new", "newer"}}})
	if err != nil {
		t.Fatal(err)
	}
	config, err := load.LoadFromData(data)
	if err != nil {
		t.Fatal(err)
	}
	matcher := matcherOf(t, config.Authorizers[0].Webhook.MatchConditions[0].Expression)
	for name, c := range map[string]struct {
		user, certificate string
		refused           bool
	}{
		"a node that was removed":                     {"system:node:gone", "old", true},
		"one without a certificate":                   {"system:node:gone", "", true},
		"a node that joined again":                    {"system:node:back", "new", false},
		"a node with a renewed certificate":           {"system:node:back", "newer", false},
		"the certificate of the one before":           {"system:node:back", "old", true},
		"a certificate that is part of another one's": {"system:node:back", "ne", true},
		"a name without a certificate":                {"system:node:back", "", true},
		"another node":                                {"system:node:gone-2", "x", false},
		"an administrator":                            {"kubernetes-admin", "", false},
	} {
		spec := authorizationv1.SubjectAccessReviewSpec{
			User: c.user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get"},
		}
		if c.certificate != "" {
			spec.Extra = credential(c.certificate)
		}
		refused, err := matcher.Eval(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec})
		if err != nil || refused != c.refused {
			t.Errorf("%s: refused %t, %v", name, refused, err)
		}
	}
}

// matcherOf evaluates a condition as the API server does.
func matcherOf(t *testing.T, expression string) *cel.CELMatcher {
	t.Helper()
	compiled, err := cel.NewDefaultCompiler().
		CompileCELExpression(&cel.SubjectAccessReviewMatchCondition{Expression: expression})
	must.NoError(t, err)
	return &cel.CELMatcher{CompilationResults: []cel.CompilationResult{compiled}}
}

// TestManyRemovedNodes: the API server accepts the file of 10,000 removed nodes, and of
// nodes that have returned with as many certificates as are accepted, by its own code.
func TestManyRemovedNodes(t *testing.T) {
	certificates := make([]string, 2*MostAccepted)
	for i := range certificates {
		certificates[i] = fmt.Sprintf("%064d", i)
	}
	nodes := []RemovedNode{{Name: "back", Accepted: certificates}}
	for i := range 10_000 {
		nodes = append(nodes, RemovedNode{Name: fmt.Sprintf("node-%d.rack-7.example.com", i)})
	}
	data, err := authorization(nodes)
	must.NoError(t, err)
	config, err := load.LoadFromData(data)
	must.NoError(t, err)
	known := sets.New("Node", "RBAC", "Webhook")
	for _, err := range validation.ValidateAuthorizationConfiguration(cel.NewDefaultCompiler(), nil, config, known,
		sets.New("Webhook")) {
		if !strings.HasSuffix(err.Field, "kubeConfigFile") { // it is on the host
			t.Fatal(err)
		}
	}
	if !readable(data) {
		t.Error("a run would write the file again, without the removed nodes")
	}
	var matchers []*cel.CELMatcher
	for _, a := range config.Authorizers[:len(config.Authorizers)-2] {
		matchers = append(matchers, matcherOf(t, a.Webhook.MatchConditions[0].Expression))
	}
	refused := func(user, certificate string) (by int) {
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Extra: credential(certificate)},
		}
		for _, m := range matchers {
			matches, err := m.Eval(t.Context(), review)
			must.NoError(t, err)
			if matches {
				by++
			}
		}
		return by
	}
	for name, want := range map[string]int{
		"node-0.rack-7.example.com": 1, "node-9999.rack-7.example.com": 1, "node-10000.rack-7.example.com": 0,
	} {
		if got := refused("system:node:"+name, "x"); got != want {
			t.Errorf("%d authorizers refuse %s", got, name)
		}
	}
	if refused("system:node:back", certificates[len(certificates)-1]) != 0 ||
		refused("system:node:back", certificates[0]) != 1 {
		t.Error("the newest certificates are not the accepted ones")
	}
}

// TestATooLongConditionIsWrittenAgain: an API server does not start with it.
func TestATooLongConditionIsWrittenAgain(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	tree, err := authorizationFiles(files)
	must.NoError(t, err)
	old, err := yaml.Marshal(map[string]any{"apiVersion": "apiserver.config.k8s.io/v1",
		"kind": "AuthorizationConfiguration", "authorizers": []any{
			refuse("removed-nodes", strings.Repeat("(request.user == 'system:node:x') || ", 3000)+"false"),
			map[string]string{"type": "Node", "name": "node"}, map[string]string{"type": "RBAC", "name": "rbac"},
		}})
	must.NoError(t, err)
	must.NoError(t, files.Write(authorizationFile, old, 0o600))
	again, err := authorizationFiles(files)
	if err != nil || string(again[0].Data) != string(tree[0].Data) {
		t.Errorf("the file stays: %v", err)
	}
}

func credential(certificate string) map[string]authorizationv1.ExtraValue {
	return map[string]authorizationv1.ExtraValue{user.CredentialIDKey: {"X509SHA256=" + certificate}}
}

// TestTheFileOfRemovedNodesIsKept: a run does not forget who was removed, and
// repairs a file that the API server could not read.
func TestTheFileOfRemovedNodesIsKept(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	if err := RefuseRemoved(files, []RemovedNode{{Name: "early"}}); err != nil || files.Exists(authorizationFile) {
		t.Fatalf("a host that is no control plane yet: %v", err)
	}
	written := func() string {
		tree, err := authorizationFiles(files)
		if err != nil {
			t.Fatal(err)
		}
		if err := files.Put(tree); err != nil {
			t.Fatal(err)
		}
		return string(tree[0].Data)
	}
	first := written()
	if err := RefuseRemoved(files, []RemovedNode{{Name: "gone"}}); err != nil {
		t.Fatal(err)
	}
	if now := written(); now == first || !strings.Contains(now, "system:node:gone") {
		t.Errorf("got %s", now)
	}
	if err := files.Write(authorizationFile, []byte("\x00garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if written() != first {
		t.Error("a damaged file stays")
	}
	if strings.Contains(first, "Webhook") {
		t.Errorf("a cluster without removed nodes asks a webhook: %s", first)
	}
}
