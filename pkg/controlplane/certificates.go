package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Certificates issues every certificate of a control plane, and makes the
// identity of a new cluster. What ends soon or no longer fits (the host's
// address changed) is issued again; an authority is
// replaced by a rotation only, as every host trusts it.
func (c ControlPlane) Certificates() step.Step {
	return step.Step{
		Name: "issue certificates",
		Check: func(context.Context) (step.Diff, error) {
			var diff step.Diff
			err := c.certificates(func(change string, _ func() error) error {
				diff = append(diff, change)
				return nil
			})
			return diff, err
		},
		Apply: func(context.Context) error {
			return c.certificates(func(_ string, apply func() error) error { return apply() })
		},
		Undo: func(context.Context) error {
			return c.Files.Drop(append(certificateFiles(), lifeFile, RenewingFile)...)
		},
	}
}

// certificates calls visit for each required change of a certificate or key, with
// the function that makes it. Where an authority is missing and visit did not
// create it, everything that it signs is missing too.
func (c ControlPlane) certificates(visit func(change string, apply func() error) error) error {
	if err := c.IdentityProblem(); err != nil {
		return err
	}
	if err := errors.Join(c.accountKeys(visit), c.encryptionKey(visit)); err != nil {
		return err
	}
	if !c.Files.Exists(crossFile) {
		if err := visit("write "+crossFile, func() error { return c.Files.Put([]host.File{{Path: crossFile, Mode: modeOf(crossFile)}}) }); err != nil {
			return err
		}
	}
	by := map[string]*pki.Authority{}
	for _, a := range authorities {
		signer, err := c.authority(a, visit)
		if err != nil {
			return fmt.Errorf("authority %s.crt: %w", a.path, err)
		}
		by[a.path] = signer
		if err := c.signingCertificate(a.path, signer, visit); err != nil {
			return err
		}
	}
	for _, l := range c.leaves() {
		if err := c.leaf(l, by[l.signer], visit); err != nil {
			return fmt.Errorf("certificate %s: %w", l.name(), err)
		}
	}
	return nil
}

func putAccountKeys(files host.Files, key []byte) error {
	public, err := pki.PublicKey(key)
	if err != nil {
		return fmt.Errorf("%s: %w", accountKey, err)
	}
	return files.Put([]host.File{{Path: accountKey, Data: key}, {Path: accountPublic, Data: public, Mode: 0o644}})
}

// authority reads an authority, or makes it. It returns nil if it is missing
// and visit did not make it.
func (c ControlPlane) authority(a authority, visit func(string, func() error) error) (*pki.Authority, error) {
	pair, err := authorityPair(c.Files, a.path)
	if err != nil {
		return nil, err
	}
	if c.Joins && pair.Key == nil {
		return nil, visit("take over "+a.path+".crt", func() error { return handed(a.path + ".crt and its key") })
	}
	if pair.Cert == nil {
		// A key alone is what a run that was killed leaves: use it.
		err := visit("make "+a.path+".crt", func() error { return c.makeAuthority(a, pair.Key) })
		if err != nil {
			return nil, err
		}
		if pair, err = authorityPair(c.Files, a.path); err != nil || pair.Cert == nil {
			return nil, err
		}
	}
	if pair.Key == nil {
		return nil, fmt.Errorf("its key %s.key is missing; put the key back", a.path)
	}
	signer, err := pki.ParseAuthority(pair)
	if err == nil && c.now().After(signer.Cert.NotAfter) {
		err = fmt.Errorf("expired on %s; a new one means a new cluster: turn this host down and start again", signer.Cert.NotAfter.Format("2006-01-02"))
	}
	return signer, err
}

func (c ControlPlane) makeAuthority(a authority, key []byte) error {
	made, err := pki.NewAuthority(a.name, key, c.now())
	if err != nil {
		return err
	}
	return putPair(c.Files, a.path, made.PEM())
}

// signingCertificate has the controller manager sign with the key of an authority.
func (c ControlPlane) signingCertificate(path string, signer *pki.Authority, visit func(string, func() error) error) error {
	if signer == nil || !slices.Contains(signers, path) {
		return nil
	}
	file := []host.File{{Path: signingFile(path), Data: pki.EncodeCertificate(signer.Cert), Mode: modeOf(signingFile(path))}}
	diff, err := c.Files.Missing(file)
	if err != nil || len(diff) == 0 {
		return err
	}
	return visit(strings.Join(diff, ", "), func() error { return c.Files.Put(file) })
}

// leaf has a certificate issued, again if it is stale.
func (c ControlPlane) leaf(l leaf, signer *pki.Authority, visit func(string, func() error) error) error {
	if !c.renews(l) || c.removed(l) {
		return nil
	}
	reason := "missing"
	if signer != nil && c.Files.Exists(l.name()) {
		pair, err := readLeaf(c.Files, l)
		if err != nil {
			return err
		}
		if reason = signer.Stale(pair, l.request, c.now()); reason == "" {
			reason, err = c.staleKubeconfig(l, signer)
		}
		if err == nil && reason == "" {
			reason, err = c.unchanged(l)
		}
		if reason == "" || err != nil {
			return err
		}
	}
	l.request.Life = c.LeafLife
	return visit(fmt.Sprintf("issue %s: %s", l.name(), reason), func() error {
		pair, err := signer.Issue(l.request, c.now())
		if err != nil {
			return err
		}
		return c.writeLeaf(l, signer, pair)
	})
}

// removed reports whether the certificate stays away, because an administrator
// has removed it. Only the first control plane of a cluster gets SuperAdminConf,
// and gets it before AdminConf. A renewal by name issues it again.
func (c ControlPlane) removed(l leaf) bool {
	return l.path == SuperAdminConf && c.renewed == nil && !c.Files.Exists(SuperAdminConf) && (c.Joins || c.Files.Exists(AdminConf))
}

func readLeaf(files host.Files, l leaf) (pki.Pair, error) {
	if !l.kubeconfig {
		return readPair(files, l.path)
	}
	data, err := files.Read(l.name())
	if err != nil {
		return pki.Pair{}, err
	}
	// One that cannot be parsed has no pair, and is therefore stale.
	config, _ := pki.ParseKubeconfig(data)
	return config.Pair, nil
}

func (c ControlPlane) staleKubeconfig(l leaf, signer *pki.Authority) (string, error) {
	if !l.kubeconfig {
		return "", nil
	}
	data, err := c.Files.Read(l.name())
	if err != nil {
		return "", err
	}
	config, err := pki.ParseKubeconfig(data)
	switch {
	case err != nil:
		return err.Error(), nil
	case config.Server != c.Server():
		return fmt.Sprintf("is for %s, not for %s", config.Server, c.Server()), nil
	case string(config.Authority) != string(signer.PEM().Cert):
		return "trusts another authority", nil
	}
	return "", nil
}

func (c ControlPlane) writeLeaf(l leaf, signer *pki.Authority, pair pki.Pair) error {
	if !l.kubeconfig {
		return putPair(c.Files, l.path, pair)
	}
	data, err := pki.Kubeconfig{Server: c.Server(), Authority: signer.PEM().Cert, User: l.request.CommonName, Pair: pair}.Encode()
	if err != nil {
		return err
	}
	return c.Files.Write(l.name(), data, 0o600)
}

// pair reads a certificate and its key; what is missing is nil.
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
func (c ControlPlane) NodeCertificate(context.Context) ([]byte, error) {
	signer, err := readSigner(c.Files, clusterCA)
	if err != nil {
		return nil, err
	}
	request := pki.Request{CommonName: "system:node:" + c.HostName, Organizations: []string{"system:nodes"}, Client: true, Life: c.LeafLife}
	node, err := signer.Issue(request, c.now())
	return append(node.Cert, node.Key...), err
}
