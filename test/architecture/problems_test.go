package architecture

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestEveryProblemOfPreflightCanBeIgnored(t *testing.T) {
	found, err := unlistedProblems("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

func TestAnUnlistedProblemIsSeen(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"ignore.go": `package plan; var names = []string{"swap"}`,
		"look.go": `package plan
func f() {
	look("swap", "")
	look("clock", "")
	_ = step.Problem{Name: "other", Text: "x"}
	_ = step.Problem{Name: "firm", Firm: true}
}`,
	} {
		path := filepath.Join(root, "pkg/plan", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := unlistedProblems(root)
	want := []string{
		"pkg/plan/look.go: --ignore-preflight does not know the problem clock; add it to pkg/plan/ignore.go",
		"pkg/plan/look.go: --ignore-preflight does not know the problem other; add it to pkg/plan/ignore.go",
	}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %q", err, found)
	}
}
