package join

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

// signer gives access to the certificate signing requests of one signer.
type signer struct {
	api  kube.Connect
	name string
}

func (s signer) selector() metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.signerName", s.name).String()}
}

// WatchRequests opens watches of the requests of one signer.
func WatchRequests(api kube.Connect, name string) kube.Watch { return signer{api, name}.watch }

func (s signer) watch(ctx context.Context) (watch.Interface, error) {
	return kube.Ask(s.api, func(client kubernetes.Interface) (watch.Interface, error) {
		return client.CertificatesV1().CertificateSigningRequests().Watch(ctx, s.selector())
	})
}

func (s signer) list(ctx context.Context) ([]certificatesv1.CertificateSigningRequest, kubernetes.Interface, error) {
	client, err := s.api.Client()
	if err != nil {
		return nil, nil, err
	}
	list, err := client.CertificatesV1().CertificateSigningRequests().List(ctx, s.selector())
	if err != nil {
		return nil, nil, fmt.Errorf("list the certificate signing requests for %s: %w", s.name, err)
	}
	return list.Items, client, nil
}

// refusal is the reason why the author of a request must not make it.
type refusal struct{ error }

// answer calls do for the open requests, in the order of inTurns, and denies a request for which do returns a
// refusal. A conflict means that another control plane has answered the request at the same time.
func (s signer) answer(
	ctx context.Context, do func(kubernetes.Interface, *certificatesv1.CertificateSigningRequest) error,
) error {
	requests, client, err := s.list(ctx)
	errs := []error{err}
	for _, csr := range inTurns(requests) {
		err := do(client, csr)
		if errors.As(err, new(refusal)) {
			err = errors.Join(err, decide(ctx, client, csr, certificatesv1.CertificateDenied, err.Error()))
		}
		if err != nil && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("request %s of %s: %w", csr.Name, csr.Spec.Username, err))
		}
	}
	return errors.Join(errs...)
}

// mostOfNode is the number of open requests of a node that are handled: the newest requests. A kubelet needs
// one. It makes another request every quarter of an hour until it gets an answer.
// https://github.com/kubernetes/client-go/blob/v0.37.2/util/certificate/certificate_manager.go#L48-L50
const mostOfNode = 10

// inTurns returns the open requests: the newest of each author first, then the second of each. A node may make
// any number of requests. In this order, it does not delay the requests of others.
func inTurns(requests []certificatesv1.CertificateSigningRequest) (all []*certificatesv1.CertificateSigningRequest) {
	turns, of := map[*certificatesv1.CertificateSigningRequest]int{}, map[string]int{}
	for i := range requests {
		if csr := &requests[i]; len(csr.Status.Certificate) == 0 && deniedBy(csr) == nil {
			all = append(all, csr)
		}
	}
	slices.SortStableFunc(all, func(a, b *certificatesv1.CertificateSigningRequest) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	for _, csr := range all {
		turns[csr] = of[csr.Spec.Username]
		of[csr.Spec.Username]++
	}
	all = slices.DeleteFunc(all, func(csr *certificatesv1.CertificateSigningRequest) bool {
		_, isNode := nodeOf(csr)
		return isNode && turns[csr] >= mostOfNode
	})
	slices.SortStableFunc(all, func(a, b *certificatesv1.CertificateSigningRequest) int { return turns[a] - turns[b] })
	return all
}

// decide approves or denies a request that has no decision yet. An earlier run, which was interrupted, may have
// decided.
func decide(
	ctx context.Context, client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest,
	what certificatesv1.RequestConditionType, why string,
) error {
	if len(csr.Status.Conditions) > 0 {
		return nil
	}
	decided := csr.DeepCopy()
	decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: what, Status: corev1.ConditionTrue, Reason: "KubeBootstrap", Message: why},
	}
	now, err := client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, decided,
		metav1.UpdateOptions{})
	if err == nil {
		*csr = *now
	}
	return err
}

// parse returns the X.509 request, whose signature the caller must check.
func parse(csr *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return nil, errors.New("the request contains no PEM")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}
