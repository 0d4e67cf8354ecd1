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

// Configure lays ready what the kubelet reads. Its Undo takes away all that
// the kubelet and kube-proxy made on the host, so it must come before the
// step that removes the pods: what is in use cannot be removed.
func (k Kubelet) Configure() step.Step {
	return step.Step{
		Name: "configure the kubelet",
		Check: func(context.Context) (step.Diff, error) {
			tree, err := k.files()
			if err != nil {
				return nil, err
			}
			diff, err := k.Files.Missing(tree)
			if err != nil {
				return nil, err
			}
			record, err := foundRecord.Diff(k.Files)
			if err != nil {
				return nil, err
			}
			diff = append(diff, record...)
			identity, err := k.identityDiff()
			return append(diff, identity...), err
		},
		Apply: func(ctx context.Context) error {
			if err := k.rememberFound(ctx); err != nil {
				return err
			}
			tree, err := k.files()
			if err != nil {
				return err
			}
			if err := k.Files.Put(tree); err != nil {
				return err
			}
			return k.identify(ctx)
		},
		Undo: k.restoreFound,
	}
}

func (k Kubelet) files() ([]host.File, error) {
	path, own := k.resolv()
	config, err := k.config(path)
	if err != nil {
		return nil, err
	}
	tree := []host.File{{Path: configFile, Data: config}}
	if path == resolvFile {
		tree = append(tree, host.File{Path: resolvFile, Data: own, Mode: 0o644})
	}
	return tree, nil
}

// identityDiff tells what the kubelet lacks to be known to the API server. A
// worker's certificate comes from the API server itself, once.
func (k Kubelet) identityDiff() (step.Diff, error) {
	if !k.ControlPlane {
		if err := k.workerProblem(); err != nil || !k.hasJoined() {
			return nil, err
		}
		return k.kubeconfigDiff()
	}
	reason, err := k.pairProblem()
	if err != nil {
		return nil, err
	}
	diff, err := k.kubeconfigDiff()
	if reason != "" {
		diff = append(diff, "issue "+currentPair+": "+reason)
	}
	return diff, err
}

// hasJoined reports whether a worker's kubelet has its certificate, and so needs
// no more than a kubeconfig.
func (k Kubelet) hasJoined() bool {
	_, err := k.currentCertificate()
	return err == nil && !k.Files.Exists(BootstrapConfig)
}

// kubeconfigDiff compares the kubeconfig with what it is to say. Without an
// authority there is nothing to say yet.
func (k Kubelet) kubeconfigDiff() (step.Diff, error) {
	authority, err := k.Files.Read(clientCA)
	if errors.Is(err, fs.ErrNotExist) {
		return step.Diff{"write " + Kubeconfig}, nil
	}
	if err != nil {
		return nil, err
	}
	now, err := k.readKubeconfig()
	if err != nil || now.Server != k.Server || now.PairFile != currentPair || !bytes.Equal(bytes.TrimSpace(now.Authority), bytes.TrimSpace(authority)) {
		return step.Diff{"write " + Kubeconfig}, nil
	}
	return nil, nil
}

// workerProblem stops at a certificate that has ended: only a new token helps.
func (k Kubelet) workerProblem() error {
	if k.Files.Exists(BootstrapConfig) {
		return nil
	}
	cert, err := k.currentCertificate()
	if errors.Is(err, fs.ErrNotExist) && !k.Files.Exists(Kubeconfig) {
		return nil // it has yet to join
	}
	if err != nil {
		return k.lapsed(err.Error())
	}
	if k.now().After(cert.NotAfter) {
		return k.lapsed(pki.Expiring(cert, k.now()))
	}
	return nil
}

// pairProblem says why a control plane's kubelet needs a new certificate. The
// kubelet renews its own well before the end, so only the end counts.
func (k Kubelet) pairProblem() (string, error) {
	cert, err := k.currentCertificate()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "missing", nil
	case err != nil:
		return err.Error(), nil
	case k.now().After(cert.NotAfter):
		return pki.Expiring(cert, k.now()), nil
	case cert.Subject.CommonName != "system:node:"+k.HostName:
		return "is for " + cert.Subject.CommonName, nil
	}
	return k.signerProblem()
}

// identify gives the kubelet its kubeconfig, and that of a control plane its
// certificate. The certificate is a file behind a link, as the kubelet itself
// keeps it. A kubelet reads both only when it starts, so its container goes
// first: the step that starts it makes another.
func (k Kubelet) identify(ctx context.Context) error {
	diff, err := k.identityDiff()
	if err != nil || len(diff) == 0 {
		return err
	}
	if err := k.service().Remove(ctx); err != nil {
		return err
	}
	if k.ControlPlane {
		if err := k.issuePair(ctx); err != nil {
			return err
		}
	}
	return k.writeKubeconfig()
}

func (k Kubelet) issuePair(ctx context.Context) error {
	reason, err := k.pairProblem()
	if err != nil || reason == "" {
		return err
	}
	return k.writePair(ctx)
}

func (k Kubelet) writePair(ctx context.Context) error {
	pair, err := k.Certificate(ctx)
	if err != nil {
		return fmt.Errorf("certificate of the kubelet: %w", err)
	}
	if err := k.Files.Write(firstPair, pair, 0o600); err != nil {
		return err
	}
	return k.Files.Symlink(currentPair, firstPair)
}

func (k Kubelet) writeKubeconfig() error {
	ca, err := k.Files.Read(clientCA)
	if err != nil {
		return err
	}
	data, err := pki.Kubeconfig{Server: k.Server, Authority: ca, User: "system:node:" + k.HostName, PairFile: currentPair}.Encode()
	if err != nil {
		return err
	}
	return k.Files.Put([]host.File{{Path: Kubeconfig, Data: data}})
}
