package image

import (
	"runtime"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
)

// TestPending compiles the smallest program, after which only the other is pending.
func TestPending(t *testing.T) {
	v, err := For("", Versions{})
	if err != nil {
		t.Fatal(err)
	}
	b := &Builder{Cache: t.TempDir()}
	recipes := []Recipe{v.Recipe("pause"), v.Recipe("hyperkube")}
	pending := func() (names []string) {
		all, err := b.Pending(t.Context(), recipes, runtime.GOARCH)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			names = append(names, p.Recipe.Name)
		}
		return names
	}
	if got := pending(); len(got) != 2 {
		t.Errorf("with an empty cache %v are pending", got)
	}
	if _, err := b.Compile(t.Context(), recipes[0], runtime.GOARCH); err != nil {
		t.Fatal(err)
	}
	if got := pending(); len(got) != 1 || got[0] != "hyperkube" {
		t.Errorf("after pause was compiled, %v are pending", got)
	}
	if took, err := cache.Duration(b.Cache, "pause"); err != nil || took <= 0 {
		t.Errorf("the time to compile pause: %s, %v", took, err)
	}
}

// TestEffort: the last duration on this machine counts, and otherwise the expected
// duration, which is shorter with more CPUs.
func TestEffort(t *testing.T) {
	b := &Builder{Cache: t.TempDir()}
	pending := []Pending{{Recipe: Recipe{Name: "hyperkube"}}, {Recipe: Recipe{Name: "coredns"}}}
	if e := b.Effort(pending, 4); e.Programs != 2 || e.Duration != 245*time.Second || e.Bytes != 490*diskRate {
		t.Errorf("got %+v", e)
	}
	if err := cache.WriteDuration(b.Cache, "hyperkube", time.Minute); err != nil {
		t.Fatal(err)
	}
	if e := b.Effort(pending, 4); e.Duration != 110*time.Second {
		t.Errorf("got %+v", e)
	}
}

// TestProgramsAreInTheTable: each program that a new cluster needs has an expected
// duration.
func TestProgramsAreInTheTable(t *testing.T) {
	v, err := For("", Versions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range v.Recipes(Catalogue(v, "")) {
		if firstCompile[r.Name] == 0 && r.Name != "pause" {
			t.Errorf("%s has no duration", r.Name)
		}
	}
}
