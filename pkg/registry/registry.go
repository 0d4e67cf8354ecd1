// Package registry configures and checks the access to a private registry: address, credentials,
// certificates. It retries requests and resumes broken transfers.
package registry

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// SavedPath is the file with the registry configuration of a host. It contains secrets.
const SavedPath = host.StateDir + "/registry.json"

// Registry is the configuration of a private registry. It contains the content of the certificate
// files, so that it can be copied to another host.
type Registry struct {
	Address   string           `json:"address"` // "registry.example.com:5000/k8s"
	Auth      authn.AuthConfig `json:"auth"`
	CA        []byte           `json:"ca,omitempty"` // PEM, like Cert and Key
	Cert      []byte           `json:"cert,omitempty"`
	Key       []byte           `json:"key,omitempty"`
	Insecure  bool             `json:"insecure,omitempty"`
	PlainHTTP bool             `json:"plainHTTP,omitempty"` // set by Check: the registry does not use TLS
	// BasicAuth is set by Check: the registry wants the password, and names no token server.
	BasicAuth bool `json:"basicAuth,omitempty"`
}

// New reads the files that the settings name, and, without a user or token, Docker's credentials.
func New(ctx context.Context, s config.RegistrySettings) (*Registry, error) {
	r := &Registry{Address: s.Address, Insecure: s.Insecure}
	r.Auth.Username, r.Auth.Password, r.Auth.RegistryToken = s.Username, s.Password, s.Token
	for _, file := range []struct {
		field, path string
		into        *[]byte
	}{{"registry.ca", s.CA, &r.CA}, {"registry.cert", s.Cert, &r.Cert}, {"registry.key", s.Key, &r.Key}} {
		if file.path == "" {
			continue
		}
		data, err := os.ReadFile(file.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: must be a file that can be read: %w", file.field, file.path, err)
		}
		*file.into = data
	}
	if _, err := r.tls(); err != nil {
		return nil, err
	}
	host, err := name.NewRegistry(r.Host(), r.options()...)
	if err != nil {
		return nil, fmt.Errorf("registry.address: %s: %w", r.Address, err)
	}
	if r.Auth == (authn.AuthConfig{}) {
		return r, r.askDocker(ctx, host)
	}
	return r, nil
}

func (r *Registry) askDocker(ctx context.Context, host name.Registry) error {
	var auth *authn.AuthConfig
	found, err := authn.Resolve(ctx, authn.DefaultKeychain, host)
	if err == nil {
		auth, err = authn.Authorization(ctx, found)
	}
	if err != nil {
		return fmt.Errorf("credentials for %s in Docker's configuration: %w", host, err)
	}
	r.Auth = *auth
	return nil
}

// Complete copies what is not set from known, if that has the same address.
func (r *Registry) Complete(known *Registry) {
	if known == nil || known.Address != r.Address {
		return
	}
	r.BasicAuth = known.BasicAuth
	r.Auth = cmp.Or(r.Auth, known.Auth)
	if len(r.CA) == 0 {
		r.CA = known.CA
	}
	if len(r.Cert) == 0 {
		r.Cert, r.Key = known.Cert, known.Key
	}
	if !r.Insecure {
		r.Insecure, r.PlainHTTP = known.Insecure, known.PlainHTTP
	}
}

// Load reads the saved configuration of a host. It returns nil if the host has no registry.
func Load(files host.Files) (*Registry, error) {
	r, err := saved.Read(files)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return r, err
}

var saved = host.Record[*Registry]{Path: SavedPath, Valid: func(r *Registry) error {
	if r.Address == "" {
		return errors.New("it has no address")
	}
	return nil
}}

// Parse decodes the output of Marshal. Empty data is a nil Registry.
func Parse(data []byte) (*Registry, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	r := &Registry{}
	return r, step.Wrap(json.Unmarshal(data, r), "the configuration of the private registry cannot be read")
}

// Marshal encodes the configuration with its secrets as JSON; nil is empty data.
func (r *Registry) Marshal() ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	data, err := json.Marshal(r)
	return append(data, '\n'), err
}

// Host returns the address without the prefix: "registry.example.com:5000".
func (r *Registry) Host() string {
	host, _, _ := strings.Cut(r.Address, "/")
	return host
}

// Prefix returns the path before the path of every image: "k8s", or "".
func (r *Registry) Prefix() string {
	_, prefix, _ := strings.Cut(r.Address, "/")
	return prefix
}

// Scheme returns "https", or "http" if the registry does not use TLS.
func (r *Registry) Scheme() string {
	if r.PlainHTTP {
		return "http"
	}
	return "https"
}

func (r *Registry) options() []name.Option {
	if r.PlainHTTP {
		return []name.Option{name.Insecure}
	}
	return nil
}

// Repository returns the repository of an image path such as "coredns/coredns".
func (r *Registry) Repository(path string) (name.Repository, error) {
	return name.NewRepository(strings.TrimSuffix(r.Address, "/")+"/"+path, r.options()...)
}

// Authorization returns a header for programs that cannot request a token, or "".
func (r *Registry) Authorization() string {
	switch a := r.Auth; {
	case a.RegistryToken != "":
		return "Bearer " + a.RegistryToken
	case a.Username != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(a.Username+":"+a.Password))
	case a.Auth != "":
		return "Basic " + a.Auth
	}
	return ""
}

func (r *Registry) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: r.Insecure} //nolint:gosec // a setting
	if len(r.CA) > 0 {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(r.CA) {
			return nil, errors.New("registry.ca: contains no PEM certificate; give the certificate of the authority " +
				"that signed the registry's")
		}
	}
	if len(r.Cert) > 0 {
		pair, err := tls.X509KeyPair(r.Cert, r.Key)
		if err != nil {
			return nil, fmt.Errorf("registry.cert and registry.key: must be a certificate and its key in PEM form: %w",
				err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
