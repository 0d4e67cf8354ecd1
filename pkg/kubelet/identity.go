package kubelet

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
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

// signerProblem notices an authority that was replaced by hand.
func (k Kubelet) signerProblem() (string, error) {
	data, err := k.Files.Read(clientCA)
	if errors.Is(err, fs.ErrNotExist) {
		return "its authority is missing", nil
	}
	if err != nil {
		return "", err
	}
	ca, err := pki.ParseCertificate(data)
	if err != nil {
		return "", err
	}
	cert, err := k.currentCertificate()
	if err == nil && cert.CheckSignatureFrom(ca) != nil {
		return "signed by another authority", nil
	}
	return "", err
}

func (k Kubelet) readKubeconfig() (pki.Kubeconfig, error) {
	data, err := k.Files.Read(Kubeconfig)
	if err != nil {
		return pki.Kubeconfig{}, err
	}
	return pki.ParseKubeconfig(data)
}
