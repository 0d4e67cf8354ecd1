package join

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

// Approver approves what the controller manager signs but never approves by itself: requests of kubelets for a
// serving certificate. It approves one only if a node asks for itself, and for no name or address but its own.
type Approver struct {
	API kube.Connect
	// Reserved networks have no nodes in them: those of pods and Services.
	Reserved []netip.Prefix
	// Hosts are the hosts of the cluster as etcd knows them.
	Hosts func(context.Context) ([]ClusterHost, error)
	// Control is the name of this host, a control plane, and Certificates the SHA-256 of each client
	// certificate that its kubelet has or had: a kubelet uses the former one for some seconds after a renewal.
	Control      string
	Certificates func() ([]string, error)
}

// ClusterHost is a host of the cluster.
type ClusterHost struct {
	Name         string
	IP           netip.Addr // not valid if etcd does not know it
	ControlPlane bool
}

// Approve answers all pending requests. It leaves a request that it does not approve, and returns the reason.
func (a Approver) Approve(ctx context.Context) error {
	var refused []error
	requests := signer{a.API, certificatesv1.KubeletServingSignerName}
	known := sync.OnceValues(func() (cluster, error) { return a.known(ctx) })
	err := requests.answer(ctx, func(client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) error {
		if !pending(csr) {
			return nil
		}
		if err := a.approve(ctx, client, csr, known); err != nil && !apierrors.IsConflict(err) {
			node := strings.TrimPrefix(csr.Spec.Username, nodeUserPrefix)
			refused = append(refused, fmt.Errorf("request %s of node %s was not approved: %w", csr.Name, node, err))
		}
		return nil
	})
	return errors.Join(append(refused, err)...)
}

func pending(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Certificate) == 0 && len(csr.Status.Conditions) == 0
}

// cluster is what the cluster knows of its hosts.
type cluster struct {
	nodes []corev1.Node
	hosts []ClusterHost
}

func (a Approver) known(ctx context.Context) (cluster, error) {
	client, err := a.API.Client()
	if err != nil {
		return cluster{}, err
	}
	nodes, listErr := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	hosts, err := a.Hosts(ctx)
	if err := cmp.Or(listErr, err); err != nil {
		return cluster{}, err
	}
	return cluster{nodes.Items, hosts}, nil
}

func (a Approver) approve(
	ctx context.Context, client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest,
	known func() (cluster, error),
) error {
	now, err := known()
	if err != nil {
		return err
	}
	if err := a.Check(csr, now.nodes, now.hosts); err != nil {
		return err
	}
	return decide(ctx, client, csr, certificatesv1.CertificateApproved, "the node asks for its own name and addresses")
}

// Check returns why a request must not be approved. nodes and hosts are those of the whole cluster.
func (a Approver) Check(csr *certificatesv1.CertificateSigningRequest, nodes []corev1.Node, hosts []ClusterHost) error {
	if csr.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		return fmt.Errorf("its signer is %s", csr.Spec.SignerName)
	}
	name, isNode := strings.CutPrefix(csr.Spec.Username, nodeUserPrefix)
	if !isNode || !slices.Contains(csr.Spec.Groups, nodesGroup) {
		return fmt.Errorf("it was made by %s, which is no node", csr.Spec.Username)
	}
	request, err := parse(csr)
	if err != nil {
		return err
	}
	return errors.Join(checkUsages(csr.Spec.Usages, certificatesv1.UsageServerAuth),
		checkSubject(request, csr.Spec.Username), a.checkControl(csr, name, hosts),
		a.checkNames(request, name, nodes, hosts))
}

// checkControl returns why a request in the name of a control plane must not be approved. Each control plane
// approves only requests that its own kubelet has made with its client certificate. NodeApprover denies
// requests for a client certificate in such a name.
func (a Approver) checkControl(csr *certificatesv1.CertificateSigningRequest, node string, hosts []ClusterHost) error {
	if !slices.ContainsFunc(hosts, func(h ClusterHost) bool { return h.ControlPlane && h.Name == node }) {
		return nil
	}
	if node != a.Control {
		return fmt.Errorf("%s is a control plane, which approves it itself", node)
	}
	own, err := a.Certificates()
	if err != nil {
		return err
	}
	shown := csr.Spec.Extra[credentialID]
	if !slices.ContainsFunc(own, func(sum string) bool { return slices.Equal(shown, []string{"X509SHA256=" + sum}) }) {
		return fmt.Errorf("%s is a control plane, and its kubelet has not asked", node)
	}
	return nil
}

// checkUsages requires one usage, and allows no other except the usages that TLS needs.
func checkUsages(usages []certificatesv1.KeyUsage, want certificatesv1.KeyUsage) error {
	allowed := []certificatesv1.KeyUsage{
		certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature, want,
	}
	for _, usage := range usages {
		if !slices.Contains(allowed, usage) {
			return fmt.Errorf("usage %q", usage)
		}
	}
	if !slices.Contains(usages, want) {
		return fmt.Errorf("it is not for %s", want)
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

// checkNames wants the node's own name and addresses and nothing else.
func (a Approver) checkNames(
	request *x509.CertificateRequest, node string, nodes []corev1.Node, hosts []ClusterHost,
) error {
	if len(request.EmailAddresses) > 0 || len(request.URIs) > 0 {
		return errors.New("it asks for mail addresses or URIs")
	}
	if len(request.DNSNames)+len(request.IPAddresses) == 0 {
		return errors.New("it asks for no name")
	}
	if reservedName(node) {
		return fmt.Errorf("the name %s is reserved for the API server", node)
	}
	if !slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == node }) {
		return fmt.Errorf("there is no node %s", node)
	}
	for _, name := range request.DNSNames {
		if name != node {
			return fmt.Errorf("it asks for the name %s, which is not that of node %s", name, node)
		}
	}
	for _, ip := range request.IPAddresses {
		addr, _ := netip.AddrFromSlice(ip)
		if err := a.checkAddress(addr.Unmap(), node, nodes, hosts); err != nil {
			return err
		}
	}
	return nil
}

// reservedName reports whether clients use the name for the API server or for their own host. A node must not
// have such a name.
func reservedName(name string) bool {
	return name == "localhost" || name == "kubernetes" || strings.HasPrefix(name, "kubernetes.") ||
		strings.HasSuffix(name, ".localhost") || strings.HasSuffix(name, ".svc") || strings.Contains(name, ".svc.")
}

// checkAddress compares addr with the address of the host in etcd, and refuses the address of another host.
// Only control planes write their list, and only a host writes its lease.
func (a Approver) checkAddress(addr netip.Addr, node string, nodes []corev1.Node, hosts []ClusterHost) error {
	reserved := func(p netip.Prefix) bool { return p.Contains(addr) }
	if addr.IsLoopback() || slices.ContainsFunc(a.Reserved, reserved) {
		return fmt.Errorf("it asks for the address %s, which cannot be a node's", addr)
	}
	var own netip.Addr
	other := ""
	for _, h := range hosts {
		switch {
		case h.Name == node && h.ControlPlane && h.IP == addr:
			return nil
		case h.Name == node && h.IP.IsValid():
			own = h.IP
		case h.IP == addr:
			other = h.Name
		}
	}
	switch {
	case other != "":
		return fmt.Errorf("it asks for the address %s, which is that of host %s", addr, other)
	case !own.IsValid():
		return checkStatus(addr, node, nodes)
	case own != addr:
		return fmt.Errorf("it asks for the address %s, and host %s has %s", addr, node, own)
	}
	return nil
}

// checkStatus is for a host without a lease, as with another network plugin. A kubelet writes the addresses of
// its own Node object, so an address that another node has too is refused.
func checkStatus(addr netip.Addr, node string, nodes []corev1.Node) error {
	owned := false
	for i := range nodes {
		if !has(&nodes[i], addr) {
			continue
		}
		if nodes[i].Name != node {
			return fmt.Errorf("it asks for the address %s, which is that of node %s", addr, nodes[i].Name)
		}
		owned = true
	}
	if !owned {
		return fmt.Errorf("it asks for the address %s, which node %s does not have", addr, node)
	}
	return nil
}

func has(node *corev1.Node, addr netip.Addr) bool {
	return slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool {
		parsed, err := netip.ParseAddr(a.Address)
		return err == nil && parsed.Unmap() == addr
	})
}

// ApproveOwn is the step that, on a control-plane host, gets its own kubelet a serving certificate: it approves
// the request as soon as that is made.
func (a Approver) ApproveOwn(files host.Files, node string) step.Step {
	return step.When("approve-serving-certificate", "approve the kubelet's serving certificate",
		"approve the serving certificate of node "+node,
		func(context.Context) (bool, error) { return !files.Exists(KubeletServingFile), nil },
		func(ctx context.Context) error {
			return kube.Await(ctx, WatchRequests(a.API, certificatesv1.KubeletServingSignerName),
				func(o runtime.Object) error {
					return a.own(ctx, node, o.(*certificatesv1.CertificateSigningRequest))
				}, nil)
		}).Waiting()
}

func (a Approver) own(ctx context.Context, node string, csr *certificatesv1.CertificateSigningRequest) error {
	if csr.Spec.Username != nodeUserPrefix+node {
		return fmt.Errorf("node %s has not asked yet", node)
	}
	if !pending(csr) {
		return nil // approved by a run that was cut short
	}
	return a.API.Do(func(client kubernetes.Interface) error {
		return a.approve(ctx, client, csr, func() (cluster, error) { return a.known(ctx) })
	})
}
