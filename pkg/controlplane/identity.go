package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The identity of a cluster is the keys of its authorities, of its service-account
// tokens and of its encrypted Secrets. All keys are created before etcd first starts.
// With other keys, the data in etcd could not be read and no host could join.

// IdentityProblem names the parts of the identity that are missing or damaged on a
// host whose etcd holds a cluster [cluster-identity].
func (p PKI) IdentityProblem() error {
	if !p.Sealed {
		return nil
	}
	states := map[string][]string{}
	parts := p.identity()
	for _, path := range slices.Sorted(maps.Keys(parts)) {
		switch err := parts[path](); {
		case errors.Is(err, fs.ErrNotExist) && p.Joins: // it is handed them again
		case errors.Is(err, fs.ErrNotExist):
			states["missing"] = append(states["missing"], path)
		case err != nil:
			states["damaged"] = append(states["damaged"], fmt.Sprintf("%s (%v)", path, err))
		}
	}
	var problems []string
	for _, state := range []string{"missing", "damaged"} {
		if paths := states[state]; paths != nil {
			problems = append(problems, state+": "+strings.Join(paths, ", "))
		}
	}
	if problems == nil {
		return nil
	}
	return &step.Problem{
		Name: "cluster-identity", Firm: true, Remedy: p.identityRemedy(),
		Text: "etcd on this host holds a cluster, whose keys cannot be made again; " + strings.Join(problems, "; "),
	}
}

func (p PKI) identityRemedy() string {
	if p.Joins {
		return "restore them from a copy, or remove the damaged files and run `kube-bootstrap master --join` with a " +
			"token and a key of `kube-bootstrap token create --control-plane`"
	}
	return "restore them from a copy of " + Dir +
		" (other control planes of the cluster have the same files), or give the cluster up with `kube-bootstrap " +
		"turndown`"
}

// identity returns, for each part, a function that reads it.
func (p PKI) identity() map[string]func() error {
	parts := map[string]func() error{
		accountKey: func() error {
			key, err := p.Files.Read(accountKey)
			if err == nil {
				_, err = pki.PublicKey(key)
			}
			return err
		},
		encryptionFile: func() error { _, _, err := readEncryption(p.Files); return err },
	}
	for _, a := range authorities {
		parts[a.path+".key"] = func() error {
			pair, err := authorityPair(p.Files, a.path)
			switch {
			case err != nil:
				return err
			case pair.Key == nil:
				return fs.ErrNotExist
			case pair.Cert == nil:
				_, err = pki.PublicKey(pair.Key)
			default:
				_, err = pki.ParseAuthority(pair)
			}
			return err
		}
	}
	return parts
}

// authorityPair is readPair without a certificate that cannot be read: it is made
// again from the key, and has the same hash then.
func authorityPair(files host.Files, path string) (pki.Pair, error) {
	pair, err := readPair(files, path)
	if _, damaged := pki.ParseCertificate(pair.Cert); damaged != nil {
		pair.Cert = nil
	}
	return pair, err
}

// makeShared has make create a file that further control planes receive.
func (i issuing) makeShared(path string, make func() error) error {
	if i.Joins {
		return i.visit("take over "+path, func() error { return notReceived(path) })
	}
	return i.visit("make "+path, make)
}

// accountKeys creates the pair of keys of service-account tokens. The public key is
// derived from the private key. Further public keys are those of a rotation.
func (i issuing) accountKeys() error {
	key, err := i.Files.Read(accountKey)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return i.makeShared(accountKey, func() error {
			if key, err = pki.NewKey(); err != nil {
				return err
			}
			return putAccountKeys(i.Files, key)
		})
	case err != nil:
		return err
	}
	public, err := pki.PublicKey(key)
	if err != nil {
		return fmt.Errorf("%s: %w", accountKey, err)
	}
	if now, err := i.Files.Read(accountPublic); err == nil && bytes.Contains(now, public) {
		return nil
	}
	return i.visit("make "+accountPublic, func() error { return putAccountKeys(i.Files, key) })
}
