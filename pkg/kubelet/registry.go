package kubelet

import (
	"encoding/json"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// credentialsPath is where the kubelet looks for credentials of its own, in
// the form of Docker's configuration.
const credentialsPath = "/var/lib/kubelet/config.json"

// RegistryFiles returns the kubelet's credentials for a private registry, which
// it gives to containerd with each pull. A registry with a token server needs
// them also for the upstream names that it replaces, because containerd asks a
// token server with these credentials only. Other registries must not have them
// there: without its hosts.toml, containerd would send them to the upstream.
func RegistryFiles(to *registry.Registry, upstreams []string) ([]host.File, error) {
	if to.Auth.Username == "" {
		return nil, nil
	}
	auths := map[string]authn.AuthConfig{to.Host(): to.Auth}
	if !to.BasicAuth {
		for _, name := range upstreams {
			auths[name] = to.Auth
		}
	}
	data, err := json.Marshal(map[string]any{"auths": auths})
	return []host.File{{Path: credentialsPath, Data: data}}, err
}
