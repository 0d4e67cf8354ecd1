//go:build root

package offline

import (
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAnImageInUseStays: Undo removes the other images, and reports the
// container.
func TestAnImageInUseStays(t *testing.T) {
	d, _ := dockertest.Start(t)
	store := imagestore.Docker(image.Main, d)
	s := sourceOf(t)
	world := dockerWorld(t, d, hosttest.Tree(t, s.Files.Root))
	before := world()
	load := s.Load(store)
	must.NoError(t, load.Apply(t.Context()))
	used := s.Images[slices.IndexFunc(s.Images, func(i image.Image) bool { return i.In(image.Main) })]
	options := client.ContainerCreateOptions{
		Name: "shop", Config: &container.Config{Image: used.Ref, Cmd: []string{"serve"}},
	}
	if _, err := d.ContainerCreate(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	t.Run("when others take its place", func(t *testing.T) {
		next := s
		next.Images = nil
		drop := next.Drop(store)
		if diff, err := drop.Check(t.Context()); err != nil || strings.Contains(diff.String(), used.Ref) {
			t.Errorf("%v, %v", diff, err)
		}
		if err := drop.Apply(t.Context()); err != nil {
			t.Error(err)
		}
		if diff, err := drop.Check(t.Context()); err != nil || len(diff) > 0 {
			t.Errorf("after Apply: %v, %v", diff, err)
		}
	})
	t.Run("when all is taken back", func(t *testing.T) {
		var left []string
		ctx := step.WithLeft(t.Context(), func(what string) { left = append(left, what) })
		for range 2 { // twice is harmless
			if err := load.Undo(ctx); err != nil {
				t.Error(err)
			}
		}
		if want := "image " + used.Ref +
			" in the main Docker: used by container shop"; !slices.Equal(slices.Compact(left), []string{want}) {
			t.Errorf("left %q, want %q", left, want)
		}
		if now := world(); !strings.Contains(now, used.Ref) || strings.Count(now, image.OurRegistry) != 1 {
			t.Errorf("before\n%s\nnow\n%s", before, now)
		}
	})
}
