package join

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// imagesPath stands for the bundles of control planes in the rules of RBAC. The API server itself serves
// nothing there. See publish.yaml.
const imagesPath = "/kube-bootstrap/bundle"

// ImageReaders are the hosts that may read the bundle of a control plane. They hold a token to join, and nodes
// of the cluster. The API server decides, so that an expired token and a removed node are refused, and the
// server of the bundle needs no rights but to ask.
type ImageReaders struct {
	API         kube.Connect           // of the agent
	Authorities func() ([]byte, error) // PEM of the authorities that sign certificates of nodes
}

// Allows reports whether the holder of a token or of a client certificate may read the bundle.
func (r ImageReaders) Allows(ctx context.Context, token string, chain []*x509.Certificate) (bool, error) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	switch {
	case token != "":
		return r.allowsToken(ctx, token)
	case len(chain) > 0:
		return r.allowsNode(ctx, chain)
	}
	return false, nil
}

func readImages() *authorizationv1.NonResourceAttributes {
	return &authorizationv1.NonResourceAttributes{Path: imagesPath, Verb: "get"}
}

// allowsToken asks with the token itself.
func (r ImageReaders) allowsToken(ctx context.Context, token string) (bool, error) {
	own, err := r.API()
	if err != nil {
		return false, err
	}
	asHolder := kube.Connect(func() (*rest.Config, error) {
		holder := rest.AnonymousClientConfig(own)
		holder.BearerToken, holder.QPS = token, own.QPS
		return holder, nil
	})
	review, err := kube.Ask(asHolder,
		func(client kubernetes.Interface) (*authorizationv1.SelfSubjectAccessReview, error) {
			return client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
				&authorizationv1.SelfSubjectAccessReview{
					Spec: authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: readImages()},
				}, metav1.CreateOptions{})
		})
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	return err == nil && review.Status.Allowed, err
}

// allowsNode asks for the user that a certificate names, as the API server authenticates it.
func (r ImageReaders) allowsNode(ctx context.Context, chain []*x509.Certificate) (bool, error) {
	authorities, err := r.Authorities()
	if err != nil {
		return false, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authorities) {
		return false, errors.New("no certificate authority")
	}
	cert := chain[0]
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: usages, CurrentTime: time.Now()}); err != nil {
		return false, nil //nolint:nilerr // it is not of this cluster
	}
	sum := sha256.Sum256(cert.Raw)
	review, err := kube.Ask(r.API, func(client kubernetes.Interface) (*authorizationv1.SubjectAccessReview, error) {
		return client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: cert.Subject.CommonName, Groups: cert.Subject.Organization, NonResourceAttributes: readImages(),
				Extra: map[string]authorizationv1.ExtraValue{
					credentialID: {"X509SHA256=" + hex.EncodeToString(sum[:])},
				},
			},
		}, metav1.CreateOptions{})
	})
	return err == nil && review.Status.Allowed, err
}

// PeerTLS returns with what this host reads the bundle of a control plane: the authorities that it knows its
// cluster by, and its token, or else the client certificate of its kubelet.
func (j *Joining) PeerTLS(ctx context.Context) (config *tls.Config, token string, err error) {
	if j.joined() && j.Target.Token.ID == "" {
		config, err := host.ClientTLS(j.Files, ClusterCAFile, KubeletCertificate, KubeletCertificate)
		return config, "", err
	}
	h, err := j.Data(ctx)
	if err != nil {
		return nil, "", err
	}
	config = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !config.RootCAs.AppendCertsFromPEM(h.ClusterCA) {
		return nil, "", errors.New("the certificate authority of the cluster cannot be read")
	}
	return config, j.Target.Token.Reveal(), nil
}
