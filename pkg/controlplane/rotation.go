package controlplane

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Subjects of a rotation.
const (
	EncryptionKey = "encryption-key"
	AccountKey    = "service-account-key"
	Authorities   = rotation.Authorities
)

// NewKey makes a key for a rotation. Store it before a control plane uses it.
func (p PKI) NewKey(subject string) ([]byte, error) {
	switch subject {
	case AccountKey:
		return pki.NewKey()
	case Authorities:
		return p.newAuthorities()
	}
	_, keys, err := encryptionKeys(p.Files)
	if err != nil {
		return nil, err
	}
	return json.Marshal(newEncryptionKey(*keys))
}

// newEncryptionKey makes a key with a name that none of the others has: what is
// stored is marked with the name of its key.
func newEncryptionKey(others []apiserverv1.Key) apiserverv1.Key {
	next := 1
	for _, k := range others {
		var n int
		if _, err := fmt.Sscanf(k.Name, "key%d", &n); err == nil {
			next = max(next, n+1)
		}
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails: it ends the program instead
	return apiserverv1.Key{Name: fmt.Sprintf("key%d", next), Secret: base64.StdEncoding.EncodeToString(secret)}
}

// Rotate has the files of this host contain the keys of a phase.
func Rotate(files host.Files, r rotation.Rotation) step.Step {
	return files.Step("rotated-files", r.String(), func() ([]host.File, error) {
		switch r.Subject {
		case EncryptionKey:
			return rotatedEncryption(files, r)
		case AccountKey:
			return rotatedAccountKeys(files, r)
		case Authorities:
			return rotatedAuthorities(files, r)
		}
		return nil, fmt.Errorf("this version of kube-bootstrap cannot rotate the %s", rotation.Title(r.Subject))
	})
}

func rotatedEncryption(files host.Files, r rotation.Rotation) ([]host.File, error) {
	config, keys, err := encryptionKeys(files)
	if err != nil {
		return nil, err
	}
	var new apiserverv1.Key
	if err := json.Unmarshal(r.New, &new); err != nil {
		return nil, fmt.Errorf("the new encryption key: %w", err)
	}
	*keys = rotation.Order(r.Phase, *keys, new)
	data, err := yaml.Marshal(config)
	return []host.File{{Path: encryptionFile, Data: data}}, err
}

// encryptionKeys returns the configuration of the encryption, and its keys.
func encryptionKeys(files host.Files) (config apiserverv1.EncryptionConfiguration, keys *[]apiserverv1.Key, err error) {
	if _, config, err = readEncryption(files); err != nil {
		return config, nil, err
	}
	for _, resources := range config.Resources {
		for _, provider := range resources.Providers {
			if provider.Secretbox != nil {
				return config, &provider.Secretbox.Keys, nil
			}
		}
	}
	return config, nil, errors.New(encryptionFile + ": it has no key of the provider secretbox")
}

// EncryptedBy returns how a value in etcd begins that the new key has encrypted.
func EncryptedBy(r rotation.Rotation) (string, error) {
	var key apiserverv1.Key
	err := json.Unmarshal(r.New, &key)
	return "k8s:enc:secretbox:v1:" + key.Name + ":", err
}

// rotatedAccountKeys has API servers sign with one key, and verify with several.
func rotatedAccountKeys(files host.Files, r rotation.Rotation) ([]host.File, error) {
	public, err := files.Read(accountPublic)
	if err != nil {
		return nil, err
	}
	new, err := pki.PublicKey(r.New)
	if err != nil {
		return nil, fmt.Errorf("the new service account key: %w", err)
	}
	keys := rotation.Order(r.Phase, blocks(public), string(new))
	tree := []host.File{{Path: accountPublic, Data: []byte(strings.Join(keys, "")), Mode: modeOf(accountPublic)}}
	if r.Phase > rotation.Accept {
		tree = append(tree, host.File{Path: accountKey, Data: r.New})
	}
	return tree, nil
}

// blocks returns the blocks of a PEM, each as PEM.
func blocks(data []byte) (all []string) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		all = append(all, string(pem.EncodeToMemory(block)))
	}
	return all
}

// SignedBy reports whether the new key of a rotation has signed a token. Its
// header names the key by the hash of its public half.
func SignedBy(r rotation.Rotation, token []byte) (bool, error) {
	public, err := pki.PublicKey(r.New)
	if err != nil {
		return false, err
	}
	block, _ := pem.Decode(public)
	sum := sha256.Sum256(block.Bytes)
	encoded, _, _ := strings.Cut(string(token), ".")
	var header struct{ Kid string }
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || json.Unmarshal(text, &header) != nil {
		return false, nil //nolint:nilerr // what is no token, no key has signed
	}
	return header.Kid == base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// newAuthorities are the new keys of a rotation of the certificate authorities.
type newAuthorities struct {
	Pairs map[string]pki.Pair `json:"pairs"` // by path
	// Cross is the new cluster authority, signed by the old one. With it, pods that
	// have read the old one accept the new certificates of API servers.
	Cross []byte `json:"cross"`
}

func (p PKI) newAuthorities() ([]byte, error) {
	made := newAuthorities{Pairs: map[string]pki.Pair{}}
	for _, a := range authorities {
		new, err := pki.NewAuthority(a.name, nil, p.Now())
		if err != nil {
			return nil, err
		}
		made.Pairs[a.path] = new.PEM()
		if a.path != ClusterCA {
			continue
		}
		old, err := Signer(p.Files, a.path)
		if err != nil {
			return nil, err
		}
		if made.Cross, err = old.CrossSign(new.Cert); err != nil {
			return nil, err
		}
	}
	return json.Marshal(made)
}

// rotatedAuthorities has the file of each authority contain the certificates that
// are trusted, that of the signer first, and the file of its key the signer's.
func rotatedAuthorities(files host.Files, r rotation.Rotation) (tree []host.File, err error) {
	var made newAuthorities
	if err := json.Unmarshal(r.New, &made); err != nil {
		return nil, fmt.Errorf("the new certificate authorities: %w", err)
	}
	for _, a := range authorities {
		have, err := files.Read(a.path + ".crt")
		if err != nil {
			return nil, err
		}
		new := made.Pairs[a.path]
		certs := rotation.Order(r.Phase, blocks(have), string(new.Cert))
		if r.Phase > rotation.Accept {
			tree = append(tree, host.File{Path: a.path + ".key", Data: new.Key})
		}
		tree = append(tree, host.File{
			Path: a.path + ".crt", Data: []byte(strings.Join(certs, "")), Mode: modeOf(a.path + ".crt"),
		})
	}
	if r.Phase > rotation.Accept {
		tree = append(tree, host.File{Path: crossFile, Data: made.Cross, Mode: modeOf(crossFile)})
	}
	return tree, nil
}

// Signer returns the authority at a path, such as ClusterCA, that signs now. In each
// phase of a rotation, the hosts that have reached the previous phase trust it.
func Signer(files host.Files, path string) (*pki.Authority, error) {
	pair, err := readPair(files, path)
	if err != nil {
		return nil, err
	}
	signer, err := pki.ParseAuthority(pair)
	if err != nil {
		return nil, fmt.Errorf("authority %s.crt: %w", path, err)
	}
	return signer, nil
}

// Reissue issues the certificates that this host has and that no longer fit, as
// after a change of their authority. A certificate that was removed stays away.
func (p PKI) Reissue() step.Step {
	renewed := map[string][]byte{}
	for _, l := range p.leaves() {
		if p.Files.Exists(l.name()) {
			renewed[l.name()] = nil
		}
	}
	return p.issue(renewed)
}
