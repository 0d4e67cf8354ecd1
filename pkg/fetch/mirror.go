package fetch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
)

// Mirrors maps a registry, such as "registry.k8s.io", to its mirror.
type Mirrors map[string]mirror.Mirror

// MirrorsOf returns the mirrors by their registries. known lists the registries that may have
// a mirror.
func MirrorsOf(all []mirror.Mirror, known []string) (Mirrors, error) {
	mirrors := Mirrors{}
	for _, mirror := range all {
		if !slices.Contains(known, mirror.Of) {
			return nil, fmt.Errorf("no image comes from %q; the registry must be one of %s",
				mirror.Of, strings.Join(known, ", "))
		}
		if _, twice := mirrors[mirror.Of]; twice {
			return nil, fmt.Errorf("%s has two mirrors; name one", mirror.Of)
		}
		mirrors[mirror.Of] = mirror
	}
	return mirrors, nil
}

// plain returns the hosts of the mirrors with plain HTTP.
func (all Mirrors) plain() (hosts []string) {
	for _, m := range all {
		if m.Plain {
			hosts = append(hosts, m.Host)
		}
	}
	return hosts
}

// registryName returns the registry of a reference as users write it:
// "docker.io", whose host is index.docker.io.
func registryName(of name.Reference) string {
	if host := of.Context().RegistryStr(); host != name.DefaultRegistry {
		return host
	}
	return "docker.io"
}

// find returns the reference to ask for: ref itself, or the same image at a
// mirror.
func (all Mirrors) find(ref string) (name.Reference, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return nil, err
	}
	mirror, ok := all[registryName(parsed)]
	if !ok {
		return parsed, nil
	}
	var options []name.Option
	if mirror.Plain {
		options = append(options, name.Insecure)
	}
	repository, err := name.NewRepository(mirror.Address()+"/"+parsed.Context().RepositoryStr(), options...)
	if err != nil {
		return nil, err
	}
	if _, byDigest := parsed.(name.Digest); byDigest {
		return repository.Digest(parsed.Identifier()), nil
	}
	return repository.Tag(parsed.Identifier()), nil
}
