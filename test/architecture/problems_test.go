package architecture

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestEveryProblemOfPreflightCanBeIgnored(t *testing.T) {
	found, err := unlistedProblems("../..")
	must.NoError(t, err)
	for _, v := range found {
		t.Error(v)
	}
}

func TestAnUnlistedProblemIsSeen(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"ignore.go": `package preflight; var names = []string{"swap"}`,
		"checks.go": `package preflight
var checks = []check{{"swap", ""}, {"clock", ""}}
func f() {
	_ = check{"images", ""}
	_ = step.Problem{Name: "other", Text: "x"}
	_ = step.Problem{Name: "firm", Firm: true}
}`,
	} {
		path := filepath.Join(root, "pkg/plan/preflight", name)
		must.Write(t, path, text)
	}
	found, err := unlistedProblems(root)
	want := []string{
		"pkg/plan/preflight/checks.go: --ignore-preflight does not know the problem clock; " +
			"add it to pkg/plan/preflight/ignore.go",
		"pkg/plan/preflight/checks.go: --ignore-preflight does not know the problem images; " +
			"add it to pkg/plan/preflight/ignore.go",
		"pkg/plan/preflight/checks.go: --ignore-preflight does not know the problem other; " +
			"add it to pkg/plan/preflight/ignore.go",
	}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %q", err, found)
	}
}
