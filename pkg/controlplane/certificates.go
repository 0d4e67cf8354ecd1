package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// PKI is the certificates and keys of a control plane.
type PKI struct {
	Host
	ExtraNames []string         // further names and addresses in the API server's certificate
	EtcdUser   string           // as which flannel on this host is known to etcd
	Sealed     bool             // etcd holds a cluster: what control planes share is not made again
	Now        func() time.Time // the clock; nil: the host's
}

func (p PKI) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

// Certificates issues every certificate of a control plane, and makes the
// identity of a new cluster. It issues a certificate again that expires soon or
// that no longer fits, for example because the address of the host changed. Only a
// rotation replaces an authority, because every host trusts it.
func (p PKI) Certificates() step.Step {
	s := p.issue(nil)
	s.Undo = func(context.Context) error {
		return p.Files.Drop(append(certificateFiles(), lifeFile, RenewingFile)...)
	}
	return s
}

// issue is Certificates limited to the certificates in renewed, by file; nil: no
// limit. A certificate that still has the content in renewed is issued again.
func (p PKI) issue(renewed map[string][]byte) step.Step {
	return step.Step{
		Name: "issue certificates",
		Check: func(context.Context) (diff step.Diff, err error) {
			err = issuing{p, renewed, func(change string, _ func() error) error {
				diff = append(diff, change)
				return nil
			}}.certificates()
			return diff, err
		},
		Apply: func(context.Context) error {
			return issuing{p, renewed, func(_ string, apply func() error) error { return apply() }}.certificates()
		},
	}
}

func putAccountKeys(files host.Files, key []byte) error {
	public, err := pki.PublicKey(key)
	if err != nil {
		return fmt.Errorf("%s: %w", accountKey, err)
	}
	return files.Put([]host.File{{Path: accountKey, Data: key}, {Path: accountPublic, Data: public, Mode: 0o644}})
}

func readLeaf(files host.Files, l leaf) (pki.Pair, error) {
	if !l.kubeconfig {
		return readPair(files, l.path)
	}
	data, err := files.Read(l.name())
	if err != nil {
		return pki.Pair{}, err
	}
	// A kubeconfig that cannot be parsed has no pair, and is therefore stale.
	config, _ := pki.ParseKubeconfig(data)
	return config.Pair, nil
}

func (p PKI) staleKubeconfig(data []byte, signer *pki.Authority) string {
	config, err := pki.ParseKubeconfig(data)
	switch {
	case err != nil:
		return err.Error()
	case config.Server != p.Server():
		return fmt.Sprintf("is for %s, not for %s", config.Server, p.Server())
	case string(config.Authority) != string(signer.PEM().Cert):
		return "trusts another authority"
	}
	return ""
}

func (p PKI) writeLeaf(l leaf, signer *pki.Authority, pair pki.Pair) error {
	if !l.kubeconfig {
		return putPair(p.Files, l.path, pair)
	}
	data, err := pki.Kubeconfig{Server: p.Server(), Authority: signer.PEM().Cert, User: l.request.CommonName, Pair: pair}.Encode()
	if err != nil {
		return err
	}
	return p.Files.Write(l.name(), data, 0o600)
}

// readPair reads a certificate and its key. The data of a missing file is nil.
func readPair(files host.Files, path string) (pki.Pair, error) {
	cert, err := files.Read(path + ".crt")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pki.Pair{}, err
	}
	key, err := files.Read(path + ".key")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pki.Pair{}, err
	}
	return pki.Pair{Cert: cert, Key: key}, nil
}

func putPair(files host.Files, path string, pair pki.Pair) error {
	return files.Put([]host.File{
		{Path: path + ".key", Data: pair.Key},
		{Path: path + ".crt", Data: pair.Cert, Mode: 0o644},
	})
}

// NodeCertificate issues this host's kubelet its first client certificate, as
// PEM of the certificate and then the key. The kubelet of a control plane can
// not ask an API server that it has yet to start.
func (p PKI) NodeCertificate(context.Context) ([]byte, error) {
	signer, err := readSigner(p.Files, clusterCA)
	if err != nil {
		return nil, err
	}
	request := pki.Request{CommonName: "system:node:" + p.HostName, Organizations: []string{"system:nodes"}, Client: true, Life: p.LeafLife}
	node, err := signer.Issue(request, p.now())
	return append(node.Cert, node.Key...), err
}
