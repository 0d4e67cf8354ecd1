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

// RegistryFiles are the kubelet's credentials for a private registry. It hands
// them to containerd with each pull, under the registry's own name and those
// upstreams whose place it takes: some registries want them for a token, and not
// with the request itself.
func RegistryFiles(to *registry.Registry, upstreams []string) ([]host.File, error) {
	if to.Auth.Username == "" {
		return nil, nil
	}
	auths := map[string]authn.AuthConfig{to.Host(): to.Auth}
	for _, name := range upstreams {
		auths[name] = to.Auth
	}
	data, err := json.Marshal(map[string]any{"auths": auths})
	return []host.File{{Path: credentialsPath, Data: data}}, err
}
