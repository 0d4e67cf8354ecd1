package controlplane

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/cel"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
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
	expression := config.Authorizers[0].Webhook.MatchConditions[0].Expression
	compiled, err := cel.NewDefaultCompiler().CompileCELExpression(&cel.SubjectAccessReviewMatchCondition{Expression: expression})
	if err != nil {
		t.Fatal(err)
	}
	matcher := &cel.CELMatcher{CompilationResults: []cel.CompilationResult{compiled}}
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
		spec := authorizationv1.SubjectAccessReviewSpec{User: c.user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get"}}
		if c.certificate != "" {
			spec.Extra = map[string]authorizationv1.ExtraValue{user.CredentialIDKey: {"X509SHA256=" + c.certificate}}
		}
		refused, err := matcher.Eval(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec})
		if err != nil || refused != c.refused {
			t.Errorf("%s: refused %t, %v", name, refused, err)
		}
	}
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
