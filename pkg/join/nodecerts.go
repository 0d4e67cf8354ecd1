package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// kubeletClients are the requests of kubelets for client certificates.
func kubeletClients(api kube.Connect) signer {
	return signer{api, certificatesv1.KubeAPIServerClientKubeletSignerName}
}

// credentialID is the attribute with the certificate that made a request.
const credentialID = "authentication.kubernetes.io/credential-id"

// NodeCertificate is a client certificate that a kubelet has got.
type NodeCertificate struct {
	Node   string
	SHA256 string
	// By is the certificate with which it was requested; none if that was a token.
	By string
}

// NodeCertificates returns what was issued to kubelets, the oldest first. The API server keeps a request for an
// hour after it was answered.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/controller/certificates/cleaner/cleaner.go#L46-L50
func NodeCertificates(ctx context.Context, api kube.Connect) (all []NodeCertificate, err error) {
	requests, _, err := kubeletClients(api).list(ctx)
	slices.SortFunc(requests, func(a, b certificatesv1.CertificateSigningRequest) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for i := range requests {
		if c, ok := issuedTo(&requests[i]); ok {
			all = append(all, c)
		}
	}
	return all, err
}

// DeleteNodeRequests deletes the requests of one kubelet for client certificates.
func DeleteNodeRequests(ctx context.Context, api kube.Connect, node string) error {
	requests, client, err := kubeletClients(api).list(ctx)
	errs := []error{err}
	for i := range requests {
		if c, ok := issuedTo(&requests[i]); ok && c.Node == node {
			errs = append(errs,
				kube.IgnoreNotFound(client.CertificatesV1().CertificateSigningRequests().Delete(ctx, requests[i].Name,
					metav1.DeleteOptions{})))
		}
	}
	return errors.Join(errs...)
}

// issuedTo reads a request that was answered, by a token or by the node itself.
func issuedTo(csr *certificatesv1.CertificateSigningRequest) (NodeCertificate, bool) {
	cert, err := pki.ParseCertificate(csr.Status.Certificate)
	if err != nil {
		return NodeCertificate{}, false
	}
	c := NodeCertificate{
		Node: strings.TrimPrefix(cert.Subject.CommonName, nodeUserPrefix), SHA256: pki.Fingerprint(cert),
	}
	if scopeOf(csr.Spec.Groups).Kind == ForWorker {
		return c, true
	}
	ids := csr.Spec.Extra[credentialID]
	if len(ids) != 1 {
		return c, false
	}
	c.By = strings.TrimPrefix(ids[0], "X509SHA256=")
	return c, csr.Spec.Username == cert.Subject.CommonName
}

// NodeApprover approves the first client certificate of a kubelet, which is requested with a token. Kubernetes
// would approve it for every name. A kubelet renews its certificate without it.
type NodeApprover struct {
	API kube.Connect
	// ControlPlanes are the names of hosts that issue that certificate themselves.
	ControlPlanes func(context.Context) ([]string, error)
}

// Approve answers all pending requests made with a token. It denies a request in the name of a control plane,
// and in a name that the token is not for.
func (a NodeApprover) Approve(ctx context.Context) error {
	return kubeletClients(a.API).answer(ctx,
		func(client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) error {
			if len(csr.Status.Conditions) > 0 || scopeOf(csr.Spec.Groups).Kind == "" {
				return nil
			}
			return a.answer(ctx, client, csr)
		})
}

func (a NodeApprover) answer(
	ctx context.Context, client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest,
) error {
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

// checkNode returns the node that a request is for, or why no token is enough for it.
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
	return name, errors.Join(checkSubject(request, request.Subject.CommonName),
		checkUsages(csr.Spec.Usages, certificatesv1.UsageClientAuth))
}
