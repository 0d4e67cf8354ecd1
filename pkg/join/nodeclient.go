package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

// NodeApprover approves the first client certificate of a kubelet, which is
// requested with a token. Kubernetes would approve it for every name. A kubelet
// renews its certificate without it.
type NodeApprover struct {
	API kube.Connect
	// ControlPlanes are the names of hosts that issue that certificate themselves.
	ControlPlanes func(context.Context) ([]string, error)
}

// Approve answers all pending requests made with a token. It denies a request in
// the name of a control plane, and in a name that the token is not for.
func (a NodeApprover) Approve(ctx context.Context) error {
	return kubeletClients(a.API).answer(ctx, func(client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) error {
		if len(csr.Status.Conditions) > 0 || scopeOf(csr.Spec.Groups).Kind == "" {
			return nil
		}
		return a.answer(ctx, client, csr)
	})
}

func (a NodeApprover) answer(ctx context.Context, client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) error {
	names, err := a.ControlPlanes(ctx)
	if err != nil {
		return err
	}
	name, err := checkNode(csr, names)
	if err != nil {
		return refusal{err}
	}
	if err := use(ctx, client, csr, name); err != nil {
		return err
	}
	return decide(ctx, client, csr, certificatesv1.CertificateApproved, "a host joins with a token")
}

// checkNode returns the name of the node that a request is for, or why nobody
// gets the certificate with a token.
func checkNode(csr *certificatesv1.CertificateSigningRequest, controlPlanes []string) (name string, refused error) {
	request, err := parse(csr)
	if err != nil {
		return "", err
	}
	name, ok := strings.CutPrefix(request.Subject.CommonName, nodeUserPrefix)
	switch {
	case !ok || len(validation.IsDNS1123Subdomain(name)) > 0:
		return "", fmt.Errorf("its subject is %s", request.Subject)
	case slices.Contains(controlPlanes, name):
		return "", fmt.Errorf("%s is a control plane", name)
	case len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0:
		return "", errors.New("it asks for names or addresses")
	}
	return name, errors.Join(checkSubject(request, request.Subject.CommonName), checkUsages(csr.Spec.Usages, certificatesv1.UsageClientAuth))
}
