package join

import (
	"context"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// kubeletClients are the requests of kubelets for client certificates.
func kubeletClients(api kube.Connect) signer {
	return signer{api, certificatesv1.KubeAPIServerClientKubeletSignerName}
}

// credentialID is where the API server notes with which certificate a request
// was made.
const credentialID = "authentication.kubernetes.io/credential-id"

// NodeCertificate is a client certificate that a kubelet has got.
type NodeCertificate struct {
	Node   string
	SHA256 string
	// By is the certificate with which it was requested; none if that was a token.
	By string
}

// NodeCertificates are the requests of kubelets for client certificates. The API
// server keeps one for an hour after it was answered.
type NodeCertificates struct{ API kube.Connect }

// Watch opens a watch of them.
func (n NodeCertificates) Watch(ctx context.Context) (watch.Interface, error) {
	return kubeletClients(n.API).watch(ctx)
}

// List returns what was issued, the oldest first.
func (n NodeCertificates) List(ctx context.Context) (all []NodeCertificate, err error) {
	requests, _, err := kubeletClients(n.API).list(ctx)
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

// Delete deletes the requests of one node.
func (n NodeCertificates) Delete(ctx context.Context, node string) error {
	return kubeletClients(n.API).answer(ctx, func(client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) error {
		if c, ok := issuedTo(csr); !ok || c.Node != node {
			return nil
		}
		return client.CertificatesV1().CertificateSigningRequests().Delete(ctx, csr.Name, metav1.DeleteOptions{})
	})
}

// issuedTo reads a request that was answered, by a token or by the node itself.
func issuedTo(csr *certificatesv1.CertificateSigningRequest) (NodeCertificate, bool) {
	cert, err := pki.ParseCertificate(csr.Status.Certificate)
	if err != nil {
		return NodeCertificate{}, false
	}
	c := NodeCertificate{Node: strings.TrimPrefix(cert.Subject.CommonName, nodeUserPrefix), SHA256: pki.Fingerprint(cert)}
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
