package kubelet

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Identity is the kubelet's certificate for the API server, and its kubeconfig.
type Identity struct {
	Files        host.Files
	HostName     string
	ControlPlane bool
	Server       string // the URL of the API server, which the kubeconfig names

	// Certificate issues a certificate and its key, in PEM: the first one of a control
	// plane's kubelet, and another one of a worker's after a change of the authority. A
	// worker's kubelet gets its first one by the token in BootstrapConfig.
	Certificate func(context.Context) ([]byte, error)
}

// diff returns what must change so that the API server accepts the kubelet.
func (i Identity) diff() (step.Diff, error) {
	if i.ControlPlane {
		return i.diffFor(i.pairProblem())
	}
	return i.workerDiff()
}

// diffFor compares the kubeconfig. reason is why the kubelet needs a new certificate.
func (i Identity) diffFor(reason string, err error) (step.Diff, error) {
	if err != nil {
		return nil, err
	}
	diff, err := i.kubeconfigDiff()
	if reason != "" {
		diff = append(diff, "issue "+currentPair+": "+reason)
	}
	return diff, err
}

// workerDiff compares the kubeconfig of a worker that has joined. It returns a problem if
// the kubelet's certificate has expired: it then needs another token.
func (i Identity) workerDiff() (step.Diff, error) {
	if i.Files.Exists(BootstrapConfig) {
		return nil, nil
	}
	cert, err := currentCertificate(i.Files)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !i.Files.Exists(Kubeconfig):
		return nil, nil // this host has not joined yet
	case err != nil:
		return nil, i.lapsed(err.Error())
	case time.Now().After(cert.NotAfter):
		return nil, i.lapsed(pki.Expiring(cert, time.Now()))
	}
	return i.kubeconfigDiff()
}

// lapsed is the problem that a worker's kubelet has no certificate with which it
// could request another one [node-certificate].
func (i Identity) lapsed(reason string) error {
	return &step.Problem{
		Name: "node-certificate", Firm: true, Text: currentPair + ": " + reason,
		Remedy: "run `kube-bootstrap token create --node NAME` with the name of this host, " + i.HostName +
			", on a control plane, and the command that it prints here",
	}
}

// kubeconfigDiff compares the kubeconfig with the wanted one. Without an authority
// the wanted one is not known yet, and so differs.
func (i Identity) kubeconfigDiff() (step.Diff, error) {
	authority, err := i.Files.Read(clientCA)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	now, readErr := readKubeconfig(i.Files)
	trusts := bytes.Equal(bytes.TrimSpace(now.Authority), bytes.TrimSpace(authority))
	if err != nil || readErr != nil || now.Server != i.Server || now.PairFile != currentPair || !trusts {
		return step.Diff{"write " + Kubeconfig}, nil
	}
	return nil, nil
}

// pairProblem returns why a control plane's kubelet needs a new certificate. A
// certificate that expires soon is no reason, because the kubelet renews it.
func (i Identity) pairProblem() (string, error) {
	cert, err := currentCertificate(i.Files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "missing", nil
	case err != nil:
		return err.Error(), nil
	case time.Now().After(cert.NotAfter):
		return pki.Expiring(cert, time.Now()), nil
	case cert.Subject.CommonName != "system:node:"+i.HostName:
		return "is for " + cert.Subject.CommonName, nil
	}
	return signerProblem(i.Files)
}

// write writes the kubeconfig of the kubelet, and the certificate of a control
// plane's kubelet. The certificate is a file behind a link, as the kubelet stores its
// later ones. A kubelet reads both only when it starts. Therefore stop removes its
// container first, and the step that starts the kubelet creates another one.
func (i Identity) write(ctx context.Context, stop func(context.Context) error) error {
	diff, err := i.diff()
	if err != nil || len(diff) == 0 {
		return err
	}
	if err := stop(ctx); err != nil {
		return err
	}
	if i.ControlPlane {
		reason, err := i.pairProblem()
		if err == nil && reason != "" {
			err = i.writePair(ctx)
		}
		if err != nil {
			return err
		}
	}
	return i.writeKubeconfig()
}

func (i Identity) writePair(ctx context.Context) error {
	pair, err := i.Certificate(ctx)
	if err != nil {
		return fmt.Errorf("certificate of the kubelet: %w", err)
	}
	if err := i.Files.Write(firstPair, pair, 0o600); err != nil {
		return err
	}
	return i.Files.Symlink(currentPair, firstPair)
}

func (i Identity) writeKubeconfig() error {
	ca, err := i.Files.Read(clientCA)
	if err != nil {
		return err
	}
	data, err := pki.Kubeconfig{
		Server: i.Server, Authority: ca, User: "system:node:" + i.HostName, PairFile: currentPair,
	}.Encode()
	if err != nil {
		return err
	}
	return i.Files.Put([]host.File{{Path: Kubeconfig, Data: data}})
}

func readKubeconfig(files host.Files) (pki.Kubeconfig, error) {
	data, err := files.Read(Kubeconfig)
	if err != nil {
		return pki.Kubeconfig{}, err
	}
	return pki.ParseKubeconfig(data)
}

// currentCertificate reads the certificate behind the link.
func currentCertificate(files host.Files) (*x509.Certificate, error) {
	target, err := os.Readlink(files.Path(currentPair))
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(target, "/") {
		target = filepath.Join(pkiDir, target)
	}
	return pki.ReadCertificate(files.Read, target)
}

// FollowAuthority has the kubelet trust the authorities of this host, and gives it a
// certificate of the first one. The step that starts the kubelet replaces its container.
func (i Identity) FollowAuthority() step.Step {
	return step.Step{
		ID: "follow-authority", Name: "have the kubelet follow the certificate authority",
		Check: func(context.Context) (step.Diff, error) { return i.diffFor(signerProblem(i.Files)) },
		Apply: func(ctx context.Context) error {
			reason, err := signerProblem(i.Files)
			if err != nil {
				return err
			}
			if reason != "" {
				if err := i.writePair(ctx); err != nil {
					return err
				}
				// A control plane that has not reached this phase may have signed it.
				if reason, err = signerProblem(i.Files); err != nil || reason != "" {
					return errors.Join(err, fmt.Errorf("the new %s: %s", currentPair, reason))
				}
			}
			return i.writeKubeconfig()
		},
	}
}

// signerProblem states why the certificate is not of the authority of this host, or "".
func signerProblem(files host.Files) (string, error) {
	data, err := files.Read(clientCA)
	if errors.Is(err, fs.ErrNotExist) {
		return "its authority is missing", nil
	}
	if err != nil {
		return "", err
	}
	cert, err := currentCertificate(files)
	if err != nil {
		return "", err
	}
	return pki.OtherSigner(cert, data)
}

// trusted returns the authorities that the kubelet reads from its kubeconfig when
// it starts. The kubelet of a worker writes this file itself when it joins.
func trusted(files host.Files) []byte {
	if config, err := readKubeconfig(files); err == nil {
		return bytes.TrimSpace(config.Authority)
	}
	data, _ := files.Read(clientCA) // nil without an authority
	return bytes.TrimSpace(data)
}
