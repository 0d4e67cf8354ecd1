// Package mirror reads the setting of registries that serve the images of others.
package mirror

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/distribution/reference"
)

// Mirror is a registry that serves the images of another one.
type Mirror struct {
	Of     string // the registry in the names of the images: "docker.io"
	Host   string // "mirror.example.com:5000"
	Prefix string // of the repositories there; may be empty
	Plain  bool   // use plain HTTP
}

// errUser does not contain the URL, because it may contain a password.
var errUser = errors.New("contains a user, which other users could read; use `docker login` instead")

// Parse reads REGISTRY=[http://]HOST[:PORT][/PREFIX].
func Parse(s string) (m Mirror, err error) {
	of, where, found := strings.Cut(s, "=")
	if !found || of == "" || where == "" {
		return m, errors.New("must be REGISTRY=HOST[/PREFIX], such as registry.k8s.io=mirror.example.com/k8s")
	}
	if strings.Contains(where, "@") {
		return m, errUser
	}
	if !strings.Contains(where, "://") {
		where = "https://" + where
	}
	u, err := url.Parse(where)
	switch {
	case err != nil:
		return m, errors.New("must name the mirror by HOST[:PORT][/PREFIX]")
	case u.Scheme != "https" && u.Scheme != "http":
		return m, fmt.Errorf("must not begin with %s://, which is not supported; use https:// or http://", u.Scheme)
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return m, fmt.Errorf("must name the mirror by HOST[:PORT][/PREFIX], and not by %q", where)
	}
	m = Mirror{Of: of, Host: u.Host, Prefix: strings.Trim(u.Path, "/"), Plain: u.Scheme == "http"}
	for _, one := range []string{of + "/probe", m.Address() + "/probe"} {
		named, err := reference.ParseNormalizedNamed(one)
		// a name without a registry gets docker.io
		if err != nil || !strings.HasPrefix(one, reference.Domain(named)+"/") {
			return m, errors.New("must be REGISTRY=HOST[:PORT][/PREFIX] with names of registries, in lower case")
		}
	}
	return m, nil
}

// ParseList reads mirrors that commas separate. The error repeats no item if any of them
// contains a user.
func ParseList(s string) (all []Mirror, err error) {
	if Shown(s) != s {
		return nil, errUser
	}
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		m, err := Parse(item)
		if err != nil {
			return nil, fmt.Errorf("%q %w", item, err)
		}
		all = append(all, m)
	}
	return slices.Compact(all), nil
}

// Shown returns what may be printed of mirrors, or of the address of a registry:
// all that follows a user and a password.
func Shown(s string) string {
	at := strings.LastIndex(s, "@")
	if at < 0 {
		return s
	}
	return "(hidden)" + s[at:]
}

// Address returns the mirror without its scheme: "mirror.example.com:5000/k8s".
func (m Mirror) Address() string { return strings.TrimSuffix(m.Host+"/"+m.Prefix, "/") }

// URL returns the root of the mirror's API, without the prefix.
func (m Mirror) URL() string {
	if m.Plain {
		return "http://" + m.Host
	}
	return "https://" + m.Host
}

// String returns the mirror as Parse reads it.
func (m Mirror) String() string {
	if m.Plain {
		return m.Of + "=http://" + m.Address()
	}
	return m.Of + "=" + m.Address()
}
