package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Mirrors maps a registry, such as "registry.k8s.io", to its mirror.
type Mirrors map[string]Mirror

// Mirror is a registry that serves the images of another one.
type Mirror struct {
	Host   string // "mirror.example.com:5000"
	Prefix string // of the repositories there; may be empty
	Plain  bool   // use plain HTTP
}

// ParseMirrors parses "registry.k8s.io=[http://]HOST[/PREFIX]". known lists
// the registries that may have a mirror.
func ParseMirrors(all []string, known []string) (Mirrors, error) {
	mirrors := Mirrors{}
	for _, text := range all {
		of, where, found := strings.Cut(text, "=")
		if !found || where == "" {
			return nil, fmt.Errorf("%q: must be REGISTRY=HOST[/PREFIX], such as %s=mirror.example.com/k8s", text, known[0])
		}
		if !slices.Contains(known, of) {
			return nil, fmt.Errorf("no image comes from %q; the registry must be one of %s", of, strings.Join(known, ", "))
		}
		if _, twice := mirrors[of]; twice {
			return nil, fmt.Errorf("%s has two mirrors; name one", of)
		}
		mirror, err := parseMirror(where)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of, err)
		}
		mirrors[of] = mirror
	}
	return mirrors, nil
}

// errUser does not contain the URL, because it may contain a password.
var errUser = errors.New("it contains a user, which other users could read; use `docker login` instead")

func parseMirror(where string) (Mirror, error) {
	if strings.Contains(where, "@") {
		return Mirror{}, errUser
	}
	if !strings.Contains(where, "://") {
		where = "https://" + where
	}
	u, err := url.Parse(where)
	switch {
	case err != nil:
		return Mirror{}, err
	case u.Scheme != "https" && u.Scheme != "http":
		return Mirror{}, fmt.Errorf("%s:// is not supported; use https:// or http://", u.Scheme)
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return Mirror{}, fmt.Errorf("%q: must be HOST[/PREFIX]", where)
	}
	m := Mirror{Host: u.Host, Prefix: strings.Trim(u.Path, "/"), Plain: u.Scheme == "http"}
	_, err = m.repository("probe")
	return m, err
}

func (m Mirror) repository(path string) (name.Repository, error) {
	if m.Prefix != "" {
		path = m.Prefix + "/" + path
	}
	var options []name.Option
	if m.Plain {
		options = append(options, name.Insecure)
	}
	return name.NewRepository(m.Host+"/"+path, options...)
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
	repository, err := mirror.repository(parsed.Context().RepositoryStr())
	if err != nil {
		return nil, err
	}
	if _, byDigest := parsed.(name.Digest); byDigest {
		return repository.Digest(parsed.Identifier()), nil
	}
	return repository.Tag(parsed.Identifier()), nil
}
