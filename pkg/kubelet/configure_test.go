package kubelet

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestCredentialsStayWithTheirRegistry: only a registry with a token server has
// its credentials under the names that it replaces.
func TestCredentialsStayWithTheirRegistry(t *testing.T) {
	const own = "registry.example.com:5000"
	for basic, want := range map[bool][]string{true: {own}, false: {"docker.io", "ghcr.io", own}} {
		to := &registry.Registry{Address: own + "/k8s", Auth: authn.AuthConfig{Username: "me", Password: "secret"}, BasicAuth: basic}
		files, err := RegistryFiles(to, []string{"docker.io", "ghcr.io"})
		if err != nil || len(files) != 1 {
			t.Fatalf("got %d files, %v", len(files), err)
		}
		var config struct{ Auths map[string]any }
		must.NoError(t, json.Unmarshal(files[0].Data, &config))
		if names := slices.Sorted(maps.Keys(config.Auths)); !slices.Equal(names, want) {
			t.Errorf("basic %t: credentials for %q, want %q", basic, names, want)
		}
	}
}
