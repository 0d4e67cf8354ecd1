// Package registry is the way to a private registry: where it is, who we are
// there, whom we trust. Everything that goes there or comes from there waits
// when it is told to, tries again, and goes on from where it was cut off.
package registry

import (
	"bytes"
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
)

// SavedPath is where a host keeps the way to its registry; only root reads it.
const SavedPath = host.StateDir + "/registry.json"

// Registry is a place in a private registry, and the way to it. It holds what
// the files that were named held, so that it can be handed to another host.
type Registry struct {
	Address   string           `json:"address"` // "registry.example.com:5000/k8s"
	Auth      authn.AuthConfig `json:"auth"`
	CA        []byte           `json:"ca,omitempty"` // PEM, as the two below
	Cert      []byte           `json:"cert,omitempty"`
	Key       []byte           `json:"key,omitempty"`
	Insecure  bool             `json:"insecure,omitempty"`
	PlainHTTP bool             `json:"plainHTTP,omitempty"` // Check found that it speaks no TLS
}

// New reads what the settings name. Without a user or token the credentials
// are those of Docker's configuration, or of its credential helpers.
func New(ctx context.Context, s config.Registry) (*Registry, error) {
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
	host, err := r.host()
	if err != nil {
		return nil, err
	}
	if r.Auth == (authn.AuthConfig{}) {
		return r, r.askDocker(ctx, host)
	}
	return r, nil
}

func (r *Registry) askDocker(ctx context.Context, host name.Registry) error {
	found, err := authn.Resolve(ctx, authn.DefaultKeychain, host)
	if err != nil {
		return fmt.Errorf("credentials for %s in Docker's configuration: %w", host, err)
	}
	auth, err := authn.Authorization(ctx, found)
	if err != nil {
		return fmt.Errorf("credentials for %s in Docker's configuration: %w", host, err)
	}
	r.Auth = *auth
	return nil
}

// Complete takes over what was not given, and is known of the same place.
func (r *Registry) Complete(known *Registry) {
	if known == nil || known.Address != r.Address {
		return
	}
	if r.Auth == (authn.AuthConfig{}) {
		r.Auth = known.Auth
	}
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

// Load reads what a host keeps: nil if it has no registry.
func Load(files host.Files) (*Registry, error) {
	data, err := files.Read(SavedPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := Parse(data)
	if err == nil && (r == nil || r.Address == "") {
		err = errors.New("it names no registry")
	}
	if err != nil {
		return nil, &host.Damaged{Path: SavedPath, Err: err}
	}
	return r, nil
}

// Parse reads what Marshal wrote: nil from nothing.
func Parse(data []byte) (*Registry, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	r := &Registry{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("the way to the private registry can not be read: %w", err)
	}
	return r, nil
}

// Marshal returns all of it, secrets too; nothing of no registry.
func (r *Registry) Marshal() ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	data, err := json.Marshal(r)
	return append(data, '\n'), err
}

// Host is the registry without the prefix: "registry.example.com:5000".
func (r *Registry) Host() string {
	host, _, _ := strings.Cut(r.Address, "/")
	return host
}

// Prefix is what stands before the path of every image: "k8s", or nothing.
func (r *Registry) Prefix() string {
	_, prefix, _ := strings.Cut(r.Address, "/")
	return prefix
}

// Scheme is how the registry is spoken to.
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

func (r *Registry) host() (name.Registry, error) {
	host, err := name.NewRegistry(r.Host(), r.options()...)
	if err != nil {
		return host, fmt.Errorf("registry.address: %s: %w", r.Address, err)
	}
	return host, nil
}

// Repository returns where images of a path lie: "coredns/coredns".
func (r *Registry) Repository(path string) (name.Repository, error) {
	return name.NewRepository(strings.TrimSuffix(r.Address, "/")+"/"+path, r.options()...)
}

// Authorization is the header that lets a program in that knows no more than
// to send it; empty without credentials.
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
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: r.Insecure}
	if len(r.CA) > 0 {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(r.CA) {
			return nil, errors.New("registry.ca: holds no certificate in PEM form; give the certificate of the authority that signed the registry's")
		}
	}
	if len(r.Cert) > 0 {
		pair, err := tls.X509KeyPair(r.Cert, r.Key)
		if err != nil {
			return nil, fmt.Errorf("registry.cert and registry.key: must be a certificate and its key in PEM form: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
