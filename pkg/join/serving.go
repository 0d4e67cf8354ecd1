package join

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// KubeletServingFile is where a kubelet keeps its serving certificate.
const KubeletServingFile = "/var/lib/kubelet/pki/kubelet-server-current.pem"

const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"
)

var servingRequests = metav1.ListOptions{
	FieldSelector: fields.OneTermEqualSelector("spec.signerName", certificatesv1.KubeletServingSignerName).String(),
}

// Refused is a serving request that was left alone, and why.
type Refused struct {
	Name   string
	Node   string
	Reason error
}

// ApproveServing approves what the controller manager signs but never approves
// by itself: requests of kubelets for a serving certificate. It approves one
// only if a node asks for itself, and for no name or address but those that
// its Node has. It returns the nodes that now get one.
func ApproveServing(ctx context.Context, client kubernetes.Interface) (approved []string, refused []Refused, err error) {
	list, err := client.CertificatesV1().CertificateSigningRequests().List(ctx, servingRequests)
	if err != nil {
		return nil, nil, fmt.Errorf("list serving requests: %w", err)
	}
	for i := range list.Items {
		csr := &list.Items[i]
		if !pending(csr) {
			continue
		}
		node := strings.TrimPrefix(csr.Spec.Username, nodeUserPrefix)
		if err := approve(ctx, client, csr); err != nil {
			refused = append(refused, Refused{Name: csr.Name, Node: node, Reason: err})
			continue
		}
		approved = append(approved, node)
	}
	return approved, refused, nil
}

func pending(csr *certificatesv1.CertificateSigningRequest) bool {
	return csr.Spec.SignerName == certificatesv1.KubeletServingSignerName &&
		len(csr.Status.Certificate) == 0 && len(csr.Status.Conditions) == 0
}

func approve(ctx context.Context, client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) error {
	name := strings.TrimPrefix(csr.Spec.Username, nodeUserPrefix)
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := CheckServing(csr, node); err != nil {
		return err
	}
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type:    certificatesv1.CertificateApproved,
		Status:  corev1.ConditionTrue,
		Reason:  "KubeBootstrapApproved",
		Message: "the node asks for its own name and addresses",
	})
	_, err = client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
	return err
}

// CheckServing tells why a serving request must not be approved, if so.
func CheckServing(csr *certificatesv1.CertificateSigningRequest, node *corev1.Node) error {
	if csr.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		return fmt.Errorf("its signer is %s", csr.Spec.SignerName)
	}
	if csr.Spec.Username != nodeUserPrefix+node.Name || !slices.Contains(csr.Spec.Groups, nodesGroup) {
		return fmt.Errorf("it was made by %s, not by node %s", csr.Spec.Username, node.Name)
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return errors.New("it holds no PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	return errors.Join(checkUsages(csr.Spec.Usages), checkSubject(request, csr.Spec.Username), checkNames(request, node))
}

func checkUsages(usages []certificatesv1.KeyUsage) error {
	allowed := []certificatesv1.KeyUsage{
		certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth,
	}
	for _, usage := range usages {
		if !slices.Contains(allowed, usage) {
			return fmt.Errorf("usage %q", usage)
		}
	}
	if !slices.Contains(usages, certificatesv1.UsageServerAuth) {
		return errors.New("it is not for serving")
	}
	return nil
}

func checkSubject(request *x509.CertificateRequest, user string) error {
	if err := request.CheckSignature(); err != nil {
		return err
	}
	if request.Subject.CommonName != user || !slices.Equal(request.Subject.Organization, []string{nodesGroup}) {
		return fmt.Errorf("its subject is %s", request.Subject)
	}
	return nil
}

// checkNames wants each name to be one that the Node has already. A kubelet
// writes these itself; that it can not claim another node's is why they are
// compared with what the whole cluster sees, and why anything else is refused.
func checkNames(request *x509.CertificateRequest, node *corev1.Node) error {
	if len(request.EmailAddresses) > 0 || len(request.URIs) > 0 {
		return errors.New("it asks for mail addresses or URIs")
	}
	if len(request.DNSNames)+len(request.IPAddresses) == 0 {
		return errors.New("it asks for no name")
	}
	names, addresses := known(node)
	for _, name := range request.DNSNames {
		if !slices.Contains(names, name) {
			return fmt.Errorf("it asks for the name %s, which node %s does not have", name, node.Name)
		}
	}
	for _, ip := range request.IPAddresses {
		addr, _ := netip.AddrFromSlice(ip)
		if !slices.Contains(addresses, addr.Unmap()) {
			return fmt.Errorf("it asks for the address %s, which node %s does not have", ip, node.Name)
		}
	}
	return nil
}

func known(node *corev1.Node) (names []string, addresses []netip.Addr) {
	for _, a := range node.Status.Addresses {
		switch a.Type {
		case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			names = append(names, a.Address)
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			if addr, err := netip.ParseAddr(a.Address); err == nil {
				addresses = append(addresses, addr.Unmap())
			}
		}
	}
	return names, addresses
}

// ServingCertificate is the step that, on a control-plane host, gets its own
// kubelet a serving certificate: it approves the request as soon as that is
// made.
func ServingCertificate(files host.Files, api kube.Connect, node string, limit time.Duration) step.Step {
	return step.Step{
		Name:  "approve the kubelet's serving certificate",
		Waits: true,
		Check: func(context.Context) (step.Diff, error) {
			if files.Exists(KubeletServingFile) {
				return nil, nil
			}
			return step.Diff{"approve the serving certificate of node " + node}, nil
		},
		Apply: func(ctx context.Context) error {
			return kube.Await(ctx, limit, watchServing(api), approveFor(ctx, api, node), nil)
		},
	}
}

func watchServing(api kube.Connect) kube.Watch {
	return func(ctx context.Context) (watch.Interface, error) {
		client, err := api.Client()
		if err != nil {
			return nil, err
		}
		return client.CertificatesV1().CertificateSigningRequests().Watch(ctx, servingRequests)
	}
}

func approveFor(ctx context.Context, api kube.Connect, node string) func(runtime.Object) error {
	return func(o runtime.Object) error {
		csr := o.(*certificatesv1.CertificateSigningRequest)
		if csr.Spec.Username != nodeUserPrefix+node {
			return fmt.Errorf("node %s has not asked yet", node)
		}
		if !pending(csr) {
			return nil
		}
		client, err := api.Client()
		if err != nil {
			return err
		}
		return approve(ctx, client, csr)
	}
}
