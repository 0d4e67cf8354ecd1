package controlplane

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// newAuthorities are the new keys of a rotation of the certificate authorities.
type newAuthorities struct {
	Pairs map[string]pki.Pair `json:"pairs"` // by path
	// Cross is the new cluster authority, signed by the old one. The API servers
	// show it, so that pods that read their authority only when they start accept
	// the new certificates.
	Cross []byte `json:"cross"`
}

func (p PKI) newAuthorities() ([]byte, error) {
	made := newAuthorities{Pairs: map[string]pki.Pair{}}
	for _, a := range authorities {
		new, err := pki.NewAuthority(a.name, nil, p.now())
		if err != nil {
			return nil, err
		}
		made.Pairs[a.path] = new.PEM()
		if a.path != clusterCA {
			continue
		}
		old, err := readSigner(p.Files, a.path)
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
		tree = append(tree, host.File{Path: a.path + ".crt", Data: []byte(strings.Join(certs, "")), Mode: modeOf(a.path + ".crt")})
	}
	if r.Phase > rotation.Accept {
		tree = append(tree, host.File{Path: crossFile, Data: made.Cross, Mode: modeOf(crossFile)})
	}
	return tree, nil
}

// Signer returns the authority of the cluster that signs now. In each phase of a
// rotation, the hosts that have reached the one before trust it.
func Signer(files host.Files) (*pki.Authority, error) { return readSigner(files, clusterCA) }

// readSigner reads the authority that signs with the key of a path.
func readSigner(files host.Files, path string) (*pki.Authority, error) {
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
