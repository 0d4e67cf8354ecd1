package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// PKI is the certificates and keys of a control plane.
type PKI struct {
	HostSettings
	ExtraNames []string         // further names and addresses in the API server's certificate
	EtcdUser   string           // as which flannel on this host is known to etcd
	Sealed     bool             // etcd holds a cluster: what control planes share is not made again
	Now        func() time.Time // the clock
}

// Certificates issues every certificate of a control plane, and makes the identity of
// a new cluster. It reissues certificates that expire soon or differ from the settings.
// Only a rotation replaces an authority, because every host trusts it.
func (p PKI) Certificates() step.Step {
	s := p.issue(nil)
	s.Undo = func(context.Context) error {
		return p.Files.Drop(append(certificateFiles(), life.Path, RenewingFile)...)
	}
	return s
}

// issue is Certificates limited to the certificates in renewed, by file; nil: no
// limit. A certificate that still has the content in renewed is issued again.
func (p PKI) issue(renewed map[string][]byte) step.Step {
	return step.Step{
		ID: "certificates", Name: "issue certificates",
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
	data, err := pki.Kubeconfig{Server: p.Server(), Authority: signer.PEM().Cert, User: l.request.CommonName,
		Pair: pair}.Encode()
	if err != nil {
		return err
	}
	return p.Files.Write(l.name(), data, 0o600)
}

// readPair reads a certificate and its key. The data of a missing file is nil.
func readPair(files host.Files, path string) (pki.Pair, error) {
	cert, certErr := files.Read(path + ".crt")
	key, keyErr := files.Read(path + ".key")
	for _, err := range []error{certErr, keyErr} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return pki.Pair{}, err
		}
	}
	return pki.Pair{Cert: cert, Key: key}, nil
}

func putPair(files host.Files, path string, pair pki.Pair) error {
	return files.Put([]host.File{
		{Path: path + ".key", Data: pair.Key},
		{Path: path + ".crt", Data: pair.Cert, Mode: 0o644},
	})
}

// NodeCertificate issues this host's kubelet its first client certificate, as PEM of
// the certificate and then the key: the kubelet has yet to start the API server.
func (p PKI) NodeCertificate(context.Context) ([]byte, error) {
	signer, err := Signer(p.Files, ClusterCA)
	if err != nil {
		return nil, err
	}
	request := pki.CertificateRequest{
		CommonName: "system:node:" + p.HostName, Organizations: []string{"system:nodes"}, Client: true,
		Life: p.LeafLife,
	}
	node, err := signer.Issue(request, p.Now())
	return append(node.Cert, node.Key...), err
}

// ServingCertificate returns the certificate with which the API server of this host serves.
func (p PKI) ServingCertificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(p.Files.Path(apiserver+".crt"), p.Files.Path(apiserver+".key"))
	return &pair, err
}

// issuing is one run of the step that issues certificates.
type issuing struct {
	PKI
	renewed map[string][]byte // see PKI.issue
	// visit is called for each required change, with the function that makes it.
	visit func(change string, apply func() error) error
}

// certificates visits each required change. Where visit did not make an authority,
// everything that it signs is missing too.
func (i issuing) certificates() error {
	if err := i.IdentityProblem(); err != nil {
		return err
	}
	if err := errors.Join(i.accountKeys(), i.encryptionKey()); err != nil {
		return err
	}
	if !i.Files.Exists(crossFile) {
		if err := i.visit("write "+crossFile,
			func() error { return i.Files.Put([]host.File{{Path: crossFile, Mode: modeOf(crossFile)}}) }); err != nil {
			return err
		}
	}
	by := map[string]*pki.Authority{}
	for _, a := range authorities {
		signer, err := i.authority(a)
		if err != nil {
			return fmt.Errorf("authority %s.crt: %w", a.path, err)
		}
		by[a.path] = signer
		if err := i.signingCertificate(a.path, signer); err != nil {
			return err
		}
	}
	for _, l := range i.leaves() {
		if err := i.leaf(l, by[l.signer]); err != nil {
			return fmt.Errorf("certificate %s: %w", l.name(), err)
		}
	}
	return nil
}

// authority reads or makes an authority. It returns nil if visit did not make it.
func (i issuing) authority(a authority) (*pki.Authority, error) {
	pair, err := authorityPair(i.Files, a.path)
	if err != nil {
		return nil, err
	}
	if i.Joins && pair.Key == nil {
		return nil, i.visit("take over "+a.path+".crt",
			func() error { return notReceived(a.path + ".crt and its key") })
	}
	if pair.Cert == nil {
		err := i.visit("make "+a.path+".crt", func() error {
			made, err := pki.NewAuthority(a.name, pair.Key, i.Now()) // a run that was killed leaves a key alone
			if err != nil {
				return err
			}
			return putPair(i.Files, a.path, made.PEM())
		})
		if err != nil {
			return nil, err
		}
		if pair, err = authorityPair(i.Files, a.path); err != nil || pair.Cert == nil {
			return nil, err
		}
	}
	if pair.Key == nil {
		return nil, fmt.Errorf("its key %s.key is missing; put the key back", a.path)
	}
	signer, err := pki.ParseAuthority(pair)
	if err == nil && i.Now().After(signer.Cert.NotAfter) {
		err = fmt.Errorf("expired on %s; a new one means a new cluster: turn this host down and start again",
			signer.Cert.NotAfter.Format("2006-01-02"))
	}
	return signer, err
}

// signingCertificate has the controller manager sign with the key of an authority.
func (i issuing) signingCertificate(path string, signer *pki.Authority) error {
	if signer == nil || !slices.Contains(signers, path) {
		return nil
	}
	file := []host.File{{Path: signingFile(path), Data: pki.EncodeCertificate(signer.Cert),
		Mode: modeOf(signingFile(path))}}
	diff, err := i.Files.Missing(file)
	if err != nil || len(diff) == 0 {
		return err
	}
	return i.visit(strings.Join(diff, ", "), func() error { return i.Files.Put(file) })
}

// leaf has a certificate issued, again if it is stale.
func (i issuing) leaf(l leaf, signer *pki.Authority) error {
	if _, named := i.renewed[l.name()]; i.renewed != nil && !named || i.removed(l) {
		return nil
	}
	reason := "missing"
	if signer != nil && i.Files.Exists(l.name()) {
		var err error
		if reason, err = i.stale(l, signer); reason == "" || err != nil {
			return err
		}
	}
	l.request.Life = i.LeafLife
	return i.visit(fmt.Sprintf("issue %s: %s", l.name(), reason), func() error {
		pair, err := signer.Issue(l.request, i.Now())
		if err != nil {
			return err
		}
		return i.writeLeaf(l, signer, pair)
	})
}

// stale returns why a certificate must be issued again, or "".
func (i issuing) stale(l leaf, signer *pki.Authority) (reason string, err error) {
	pair, err := readLeaf(i.Files, l)
	if err != nil {
		return "", err
	}
	data, err := i.Files.Read(l.name())
	if reason = signer.Stale(pair, l.request, i.Now()); reason == "" && l.kubeconfig {
		reason = i.staleKubeconfig(data, signer)
	}
	if old, named := i.renewed[l.name()]; reason == "" && named && bytes.Equal(data, old) {
		reason = "to be renewed"
	}
	return reason, err
}

// removed reports whether an administrator has removed the certificate. Only the first
// control plane gets SuperAdminConf, before AdminConf. A renewal by name issues it again.
func (i issuing) removed(l leaf) bool {
	return l.path == SuperAdminConf && i.renewed == nil && !i.Files.Exists(SuperAdminConf) &&
		(i.Joins || i.Files.Exists(AdminConf))
}
