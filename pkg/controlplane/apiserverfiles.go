package controlplane

import (
	"cmp"
	_ "embed" // the files that hold for every cluster
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// What the API server reads besides certificates.
const (
	encryptionFile     = ConfigDir + "/encryption.yaml"
	auditFile          = ConfigDir + "/audit.yaml"
	admissionFile      = ConfigDir + "/admission.yaml"
	authenticationFile = ConfigDir + "/authentication.yaml"
	authorizationFile  = ConfigDir + "/authorization.yaml"
	nobodyFile         = ConfigDir + "/nobody.yaml"
)

var (
	//go:embed config/audit.yaml
	auditPolicy []byte
	//go:embed config/admission.yaml
	admission []byte
	//go:embed config/authentication.yaml
	authentication []byte
)

func (s StaticPods) apiserverFiles() ([]host.File, error) {
	encryption, _, encryptionErr := readEncryption(s.Files)
	authentication, err := authenticationConfig(s.OIDC)
	if err := cmp.Or(encryptionErr, err); err != nil {
		return nil, err
	}
	return []host.File{
		{Path: encryptionFile, Data: encryption},
		{Path: auditFile, Data: []byte(cmp.Or(s.AuditPolicy, string(auditPolicy)))},
		{Path: admissionFile, Data: admission},
		{Path: authenticationFile, Data: authentication},
	}, nil
}

// readEncryption returns the configuration with the keys that encrypt Secrets.
func readEncryption(files host.Files) (data []byte, config apiserverv1.EncryptionConfiguration, err error) {
	data, err = files.Read(encryptionFile)
	if err != nil {
		return nil, config, err
	}
	if config, err = parseEncryption(data); err != nil {
		return nil, config, fmt.Errorf("%s: %w", encryptionFile, err)
	}
	return data, config, nil
}

func parseEncryption(data []byte) (config apiserverv1.EncryptionConfiguration, err error) {
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return config, err
	}
	if len(config.Resources) == 0 {
		return config, errors.New("it has no key")
	}
	return config, nil
}

// encryptionKey creates the configuration once, because another key cannot decrypt the
// stored Secrets.
func (i issuing) encryptionKey() error {
	if _, _, err := readEncryption(i.Files); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return i.makeShared(encryptionFile, func() error {
		data, err := newEncryption()
		if err != nil {
			return err
		}
		return i.Files.Write(encryptionFile, data, modeOf(encryptionFile))
	})
}

func newEncryption() ([]byte, error) {
	secretbox := &apiserverv1.SecretboxConfiguration{Keys: []apiserverv1.Key{newEncryptionKey(nil)}}
	return yaml.Marshal(apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiserver.config.k8s.io/v1", Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: []string{"secrets"},
			// identity reads what was stored before; the first one writes.
			Providers: []apiserverv1.ProviderConfiguration{{Secretbox: secretbox},
				{Identity: &apiserverv1.IdentityConfiguration{}}},
		}},
	})
}

// oidcPrefix keeps the users and groups of a provider apart from those of the
// cluster, unless a setting names another prefix.
const oidcPrefix = "oidc:"

// authenticationConfig returns the file that names whom the API server accepts.
func authenticationConfig(o config.OIDC) ([]byte, error) {
	if o.IssuerURL == (url.URL{}) {
		return authentication, nil
	}
	var all apiserverv1.AuthenticationConfiguration
	if err := yaml.UnmarshalStrict(authentication, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", authenticationFile, err)
	}
	all.JWT = append(all.JWT, provider(o))
	return yaml.Marshal(all)
}

func provider(o config.OIDC) apiserverv1.JWTAuthenticator {
	user := strings.TrimPrefix(cmp.Or(o.UsernamePrefix, oidcPrefix), "-")
	p := apiserverv1.JWTAuthenticator{
		Issuer: apiserverv1.Issuer{
			URL: o.IssuerURL.String(), Audiences: []string{o.ClientID}, CertificateAuthority: o.CA,
		},
	}
	p.ClaimMappings.Username = apiserverv1.PrefixedClaimOrExpression{Claim: cmp.Or(o.UsernameClaim, "sub"),
		Prefix: &user}
	if o.GroupsClaim != "" {
		p.ClaimMappings.Groups = apiserverv1.PrefixedClaimOrExpression{
			Claim: o.GroupsClaim, Prefix: new(cmp.Or(o.GroupsPrefix, oidcPrefix)),
		}
	}
	p.UserValidationRules = []apiserverv1.UserValidationRule{
		{Expression: "!user.username.startsWith('system:') && user.username != '" + KubeletClientUser + "'",
			Message: "a component of the cluster has this name"},
		{Expression: "user.groups.all(group, !group.startsWith('system:') && !group.startsWith('kube-bootstrap:'))",
			Message: "the cluster has groups with this prefix"},
	}
	return p
}
