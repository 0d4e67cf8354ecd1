package controlplane

import (
	"cmp"
	_ "embed" // the files that hold for every cluster
	"errors"
	"fmt"
	"io/fs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// What the API server reads besides certificates.
const (
	encryptionFile     = ConfigDir + "/encryption.yaml"
	auditFile          = ConfigDir + "/audit.yaml"
	admissionFile      = ConfigDir + "/admission.yaml"
	authenticationFile = ConfigDir + "/authentication.yaml"
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
	encryption, _, err := readEncryption(s.Files)
	if err != nil {
		return nil, err
	}
	authentication, err := authenticationConfig(s.OIDC)
	if err != nil {
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
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return nil, config, fmt.Errorf("%s: %w", encryptionFile, err)
	}
	if len(config.Resources) == 0 {
		return nil, config, fmt.Errorf("%s: it has no key", encryptionFile)
	}
	return data, config, nil
}

// encryptionKey makes that configuration, once: another key could not read what
// is stored. Only the first control plane makes one.
func (i issuing) encryptionKey() error {
	switch _, _, err := readEncryption(i.Files); {
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case i.Joins:
		return i.visit("take over "+encryptionFile, func() error { return notReceived(encryptionFile) })
	}
	return i.visit("make "+encryptionFile, func() error {
		data, err := newEncryption()
		if err != nil {
			return err
		}
		return i.Files.Put([]host.File{{Path: encryptionFile, Data: data}})
	})
}

func newEncryption() ([]byte, error) {
	key, err := newEncryptionKey(nil)
	if err != nil {
		return nil, err
	}
	secretbox := &apiserverv1.SecretboxConfiguration{Keys: []apiserverv1.Key{key}}
	return yaml.Marshal(apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiserver.config.k8s.io/v1", Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: []string{"secrets"},
			// identity reads what was stored before; the first one writes.
			Providers: []apiserverv1.ProviderConfiguration{{Secretbox: secretbox}, {Identity: &apiserverv1.IdentityConfiguration{}}},
		}},
	})
}
