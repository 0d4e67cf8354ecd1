package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// FollowAuthority has the kubelet trust the authorities in the file of this host,
// and gives it a certificate of the first one. The step that starts the kubelet
// then replaces its container.
func (i Identity) FollowAuthority() step.Step {
	return step.Step{
		Name:  "have the kubelet follow the certificate authority",
		Check: func(context.Context) (step.Diff, error) { return i.diffFor(signerProblem(i.Files)) },
		Apply: i.followAuthority,
	}
}

func (i Identity) followAuthority(ctx context.Context) error {
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
}

// signerProblem states why the certificate does not belong to the authority in the
// file of this host; "" if it does.
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
	return pki.OtherSigner(pki.EncodeCertificate(cert), data)
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
