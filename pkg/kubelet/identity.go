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

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// currentCertificate reads the certificate behind the link.
func (k Kubelet) currentCertificate() (*x509.Certificate, error) {
	target, err := os.Readlink(k.Files.Path(currentPair))
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(target, "/") {
		target = filepath.Join(pkiDir, target)
	}
	data, err := k.Files.Read(target)
	if err != nil {
		return nil, err
	}
	return pki.ParseCertificate(data)
}

// signerProblem states why the certificate does not belong to the authority in the
// file of this host; "" if it does.
func (k Kubelet) signerProblem() (string, error) {
	data, err := k.Files.Read(clientCA)
	if errors.Is(err, fs.ErrNotExist) {
		return "its authority is missing", nil
	}
	if err != nil {
		return "", err
	}
	cert, err := k.currentCertificate()
	if err != nil {
		return "", err
	}
	return pki.OtherSigner(pki.EncodeCertificate(cert), data)
}

// FollowAuthority has the kubelet trust the authorities in the file of this host,
// and gives it a certificate of the first one. The step that starts the kubelet
// then replaces its container.
func (k Kubelet) FollowAuthority() step.Step {
	return step.Step{
		Name: "have the kubelet follow the certificate authority",
		Check: func(context.Context) (step.Diff, error) {
			diff, err := k.kubeconfigDiff()
			if err != nil {
				return nil, err
			}
			reason, err := k.signerProblem()
			if reason != "" {
				diff = append(diff, "issue "+currentPair+": "+reason)
			}
			return diff, err
		},
		Apply: k.followAuthority,
	}
}

func (k Kubelet) followAuthority(ctx context.Context) error {
	reason, err := k.signerProblem()
	if err != nil {
		return err
	}
	if reason != "" {
		if err := k.writePair(ctx); err != nil {
			return err
		}
		// A control plane that has not reached this phase may have signed it.
		if reason, err = k.signerProblem(); err != nil || reason != "" {
			return errors.Join(err, fmt.Errorf("the new %s: %s", currentPair, reason))
		}
	}
	return k.writeKubeconfig()
}

// trusted returns the authorities that the kubelet reads from its kubeconfig when
// it starts. The kubelet of a worker writes this file itself when it joins.
func (k Kubelet) trusted() []byte {
	if config, err := k.readKubeconfig(); err == nil {
		return bytes.TrimSpace(config.Authority)
	}
	data, err := k.Files.Read(clientCA)
	if err != nil {
		return nil
	}
	return bytes.TrimSpace(data)
}

func (k Kubelet) readKubeconfig() (pki.Kubeconfig, error) {
	data, err := k.Files.Read(Kubeconfig)
	if err != nil {
		return pki.Kubeconfig{}, err
	}
	return pki.ParseKubeconfig(data)
}
