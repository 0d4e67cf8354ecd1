package join

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// FlannelSigner stands for the agents of control planes, see Issuer.
const FlannelSigner = "kube-bootstrap.dev/flannel"

// Where a host has the certificate by which etcd knows it, and its key.
const (
	FlannelCertFile = "/etc/kubernetes/pki/etcd/flannel.crt"
	FlannelKeyFile  = "/etc/kubernetes/pki/etcd/flannel.key"
)

// FetchFlannel is the step that has the control planes issue the certificate by which etcd knows a worker, as
// that user: with the token of a host that joins, later with the certificate of its kubelet. The key never
// leaves the host.
func (j *Joining) FetchFlannel(user string) step.Step {
	return step.Step{
		ID: "flannel-certificate", Name: "fetch flannel's certificate of etcd",
		Check: func(context.Context) (step.Diff, error) {
			reason, err := j.staleFlannel(user)
			if err != nil || reason == "" {
				return nil, err
			}
			return step.Diff{"have " + FlannelCertFile + " issued: " + reason}, nil
		},
		Apply: func(ctx context.Context) error {
			pair, err := requestPair(ctx, j.connect(ctx), "flannel's certificate", "flannel-", FlannelSigner, user)
			if err != nil {
				return err
			}
			return j.Files.Put([]host.File{{Path: FlannelKeyFile, Data: pair.Key},
				{Path: FlannelCertFile, Data: pair.Cert, Mode: 0o644}})
		},
		Undo: func(context.Context) error { return j.Files.Drop(FlannelCertFile, FlannelKeyFile) },
	}
}

// staleFlannel says why the certificate must be issued; "" if it need not.
func (j *Joining) staleFlannel(user string) (string, error) {
	cert, err := j.Files.Read(FlannelCertFile)
	key, keyErr := j.Files.Read(FlannelKeyFile)
	if err = errors.Join(err, keyErr); host.Lost(err) {
		return "missing", nil
	}
	if err != nil {
		return "", err
	}
	authority, err := j.Files.Read(EtcdCAFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it is missing on a host that is about to join
		return "", err
	}
	return pki.StaleClient(pki.Pair{Cert: cert, Key: key}, user, authority, time.Now())
}

// connect returns how this host asks the API server: with its kubelet's certificate if it has one, else with
// its token.
func (j *Joining) connect(ctx context.Context) kube.Connect {
	if j.joined() && j.Target.Token.ID == "" {
		return kube.Kubeconfig(KubeletKubeconfig)
	}
	return func() (*rest.Config, error) {
		h, err := j.Data(ctx)
		if err != nil {
			return nil, err
		}
		return kube.Token(j.Target.Server, j.Target.Token.Reveal(), h.ClusterCA)()
	}
}

// RequestNode requests a client certificate for a node. The node authenticates with its current certificate, as
// its kubelet does before that expires.
func RequestNode(ctx context.Context, api kube.Connect, node string) (pki.Pair, error) {
	return requestPair(ctx, api, "the kubelet's certificate", "csr-",
		certificatesv1.KubeAPIServerClientKubeletSignerName, nodeUserPrefix+node, nodesGroup)
}

// requestPair requests a client certificate with a new key.
func requestPair(
	ctx context.Context, api kube.Connect, what, prefix, signer, user string, groups ...string,
) (pki.Pair, error) {
	request, key, err := pki.NewRequest(user, groups...)
	if err != nil {
		return pki.Pair{}, err
	}
	cert, err := requested(ctx, api, prefix, certificatesv1.CertificateSigningRequestSpec{
		Request: request, SignerName: signer,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	})
	if err != nil {
		return pki.Pair{}, fmt.Errorf("request %s: %w", what, err)
	}
	return pki.Pair{Cert: cert, Key: key}, nil
}

// requested requests a certificate and waits until it is signed.
func requested(
	ctx context.Context, api kube.Connect, prefix string, spec certificatesv1.CertificateSigningRequestSpec,
) ([]byte, error) {
	client, err := api.Client()
	if err != nil {
		return nil, err
	}
	var made *certificatesv1.CertificateSigningRequest
	err = step.Until(ctx, func(ctx context.Context) (err error) {
		made, err = client.CertificatesV1().CertificateSigningRequests().Create(ctx,
			&certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}, Spec: spec,
			}, metav1.CreateOptions{})
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	return issued(ctx, client, made.Name)
}

// issued waits for the certificate.
func issued(ctx context.Context, client kubernetes.Interface, name string) (cert []byte, err error) {
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
	open := func(ctx context.Context) (watch.Interface, error) {
		return client.CertificatesV1().CertificateSigningRequests().Watch(ctx, only)
	}
	err = kube.Await(ctx, open, func(o runtime.Object) error {
		csr := o.(*certificatesv1.CertificateSigningRequest)
		cert = csr.Status.Certificate
		if refused := deniedBy(csr); refused != nil {
			return step.Final(refused)
		}
		if len(cert) == 0 {
			return fmt.Errorf("no control plane has signed the request %s yet", name)
		}
		return nil
	}, func() string {
		return "control planes sign it: `kube-bootstrap status` there shows whether the agent runs"
	})
	return cert, err
}

// deniedBy returns the problem that a request was denied, with the reason.
func deniedBy(csr *certificatesv1.CertificateSigningRequest) error {
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return &step.Problem{Name: "certificate-denied", Firm: true,
				Text: "the control plane refuses the certificate: " + c.Message,
				Remedy: "give this host a name that no other host has (--host-name), or, if it is that node, use a " +
					"token of `kube-bootstrap token create --node` with its name"}
		}
	}
	return nil
}
