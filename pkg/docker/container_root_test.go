//go:build root

package docker

import (
	"slices"
	"testing"

	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestSettingsOfTheEngine: what the user sets for all containers of the engine does not change ours. With
// userns-remap, a program with the setuid bit would run as another user.
func TestSettingsOfTheEngine(t *testing.T) {
	const name = "kube-bootstrap-test-settings"
	engine, image := emptyImage(t, name)
	for _, privileged := range []bool{false, true} {
		must.NoError(t, engine.replace(t.Context(), Container{
			Name: name, Image: image, Command: []string{"/none"}, Privileged: privileged,
		}))
		found, err := engine.ContainerInspect(t.Context(), name, client.ContainerInspectOptions{})
		must.NoError(t, err)
		hc := found.Container.HostConfig
		if hc.UsernsMode != "host" || hc.Runtime != "runc" || hc.Init == nil || *hc.Init ||
			!slices.Contains(hc.SecurityOpt, "no-new-privileges") {
			t.Errorf("privileged %t: users %q, runtime %q, init %v, security %q", privileged, hc.UsernsMode, hc.Runtime,
				hc.Init, hc.SecurityOpt)
		}
	}
}
