package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Mirrors say where to find the images of a registry instead.
type Mirrors map[string]Mirror

// Mirror is a registry that has the images of another one.
type Mirror struct {
	Host   string // "mirror.example.com:5000"
	Prefix string // of the repositories there; may be empty
	Plain  bool   // it speaks plain HTTP
}

// ParseMirrors reads "registry.k8s.io=[http://]HOST[/PREFIX]", one for each
// registry that is known.
func ParseMirrors(all []string, known []string) (Mirrors, error) {
	mirrors := Mirrors{}
	for _, text := range all {
		of, where, found := strings.Cut(text, "=")
		if !found || where == "" {
			return nil, fmt.Errorf("%q: must be REGISTRY=HOST[/PREFIX], such as %s=mirror.example.com/k8s", text, known[0])
		}
		if !slices.Contains(known, of) {
			return nil, fmt.Errorf("nothing comes from %q; it must be one of %s", of, strings.Join(known, ", "))
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

// errUser is told without the text, which holds a password.
var errUser = errors.New("it has a user in it, which others could read; use `docker login` instead")

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
		return Mirror{}, fmt.Errorf("%s:// is no way to reach a registry; use https:// or http://", u.Scheme)
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

// plain lists the hosts that may be asked by plain HTTP.
func (all Mirrors) plain() (hosts []string) {
	for _, m := range all {
		if m.Plain {
			hosts = append(hosts, m.Host)
		}
	}
	return hosts
}

// find returns where to ask for a reference: the same, or at a mirror.
func (all Mirrors) find(ref string) (name.Reference, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return nil, err
	}
	mirror, ok := all[parsed.Context().RegistryStr()]
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
