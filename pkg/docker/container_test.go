package docker

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestSettingsOfTheEngine: what the user sets for all containers of the engine does not change ours. With
// userns-remap, a program with the setuid bit would run as another user.
func TestSettingsOfTheEngine(t *testing.T) {
	engine, err := Choice{}.Open()
	must.NoError(t, err)
	const image, name = "kube-bootstrap-test-settings:1", "kube-bootstrap-test-settings"
	must.NoError(t, engine.Images().Import(t.Context(), image, bytes.NewReader(make([]byte, 1024))))
	t.Cleanup(func() {
		_ = engine.Remove(context.Background(), name)
		_ = engine.Images().Remove(context.Background(), image)
	})
	for _, privileged := range []bool{false, true} {
		must.NoError(t, engine.replace(t.Context(), Container{Name: name, Image: image, Command: []string{"/none"}, Privileged: privileged}))
		found, err := engine.ContainerInspect(t.Context(), name, client.ContainerInspectOptions{})
		must.NoError(t, err)
		hc := found.Container.HostConfig
		if hc.UsernsMode != "host" || hc.Runtime != "runc" || hc.Init == nil || *hc.Init || !slices.Contains(hc.SecurityOpt, "no-new-privileges") {
			t.Errorf("privileged %t: users %q, runtime %q, init %v, security %q", privileged, hc.UsernsMode, hc.Runtime, hc.Init, hc.SecurityOpt)
		}
	}
}
