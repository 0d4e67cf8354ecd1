package join

import (
	"context"
	"crypto"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

// Issuer issues the etcd certificates of hosts, and creates the etcd users that they name. A joining host
// requests with its token, a joined host as its node.
type Issuer struct {
	API kube.Connect
	// User returns the common name that a host must ask for, and CertificateUser the common name of the signed
	// certificate: an etcd user of its own.
	User            func(host string) string
	CertificateUser func(host, certificate string) string
	// ControlPlanes are the names of hosts that issue their certificates themselves. Nobody else gets one in
	// their name.
	ControlPlanes func(context.Context) ([]string, error)
	// Admit gives a host that user of etcd.
	Admit func(ctx context.Context, host, user string) error
	// Sign signs a certificate for that user.
	Sign func(user string, public crypto.PublicKey) ([]byte, error)
}

// Issue answers all pending requests. It denies a request that its author may not make.
func (i Issuer) Issue(ctx context.Context) error {
	requests := signer{i.API, FlannelSigner}
	return requests.answer(ctx, func(client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) error {
		if len(csr.Status.Certificate) > 0 || deniedBy(csr) != nil {
			return nil
		}
		return i.answer(ctx, client, csr)
	})
}

func (i Issuer) answer(
	ctx context.Context, client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest,
) error {
	names, err := i.ControlPlanes(ctx)
	if err != nil {
		return err
	}
	host, public, err := i.check(csr, names)
	if err != nil {
		return refusal{err}
	}
	if _, isNode := nodeOf(csr); !isNode {
		if err := use(ctx, client, csr, host); err != nil {
			return err
		}
	}
	// Every control plane comes to the same name, which X.509 limits to 64 characters. The names of a host's
	// users sort by age.
	user := i.CertificateUser(host, fmt.Sprintf("%08x", csr.CreationTimestamp.Unix()))
	if err := i.Admit(ctx, host, user); err != nil {
		return err
	}
	cert, err := i.Sign(user, public)
	if err != nil {
		return err
	}
	if err := decide(ctx, client, csr, certificatesv1.CertificateApproved,
		"a host asks for its own user of etcd"); err != nil {
		return err
	}
	csr.Status.Certificate = cert
	_, err = client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, csr, metav1.UpdateOptions{})
	return err
}

// check returns the host that a request is for, and its public key. The subject is compared, but nothing of the
// request is signed except the key.
func (i Issuer) check(
	csr *certificatesv1.CertificateSigningRequest, controlPlanes []string,
) (host string, public crypto.PublicKey, err error) {
	request, err := parse(csr)
	if err != nil {
		return "", nil, err
	}
	host = strings.TrimPrefix(request.Subject.CommonName, i.User(""))
	switch node, isNode := nodeOf(csr); {
	case request.CheckSignature() != nil:
		err = request.CheckSignature()
	case request.Subject.String() != "CN="+i.User(host) || len(validation.IsDNS1123Subdomain(host)) > 0:
		err = fmt.Errorf("its subject is %s", request.Subject)
	case slices.Contains(controlPlanes, host):
		err = fmt.Errorf("%s is a control plane", host)
	case isNode && node != host:
		err = fmt.Errorf("node %s asks for %s", node, host)
	case !isNode && scopeOf(csr.Spec.Groups).Kind == "":
		err = fmt.Errorf("%s is no node and has no token", csr.Spec.Username)
	}
	return host, request.PublicKey, err
}

func nodeOf(csr *certificatesv1.CertificateSigningRequest) (name string, ok bool) {
	name, ok = strings.CutPrefix(csr.Spec.Username, nodeUserPrefix)
	return name, ok && slices.Contains(csr.Spec.Groups, nodesGroup)
}
