package join

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func nodeAt(name string, ips ...string) corev1.Node {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, ip := range ips {
		node.Status.Addresses = append(node.Status.Addresses,
			corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return node
}

// ask is what worker-1 asks for in its request.
type ask struct {
	request x509.CertificateRequest
	spec    certificatesv1.CertificateSigningRequestSpec
}

// become makes another node request a certificate for its own name.
func (a *ask) become(node string) {
	a.spec.Username = "system:node:" + node
	a.request.Subject.CommonName = a.spec.Username
	a.request.DNSNames = []string{node}
}

func TestApproverCheck(t *testing.T) {
	// worker-1 also claims the master's address and one of a Service.
	nodes := []corev1.Node{
		nodeAt("master-1", "10.0.0.1"), nodeAt("master-2"), nodeAt("worker-3", "10.0.0.4", "10.0.0.8"),
		nodeAt("worker-1", "10.0.0.2", "10.0.0.1", "10.0.0.3", "10.0.0.7", "10.0.0.8", "10.96.0.1", "127.0.0.1"),
	}
	approver := Approver{
		Reserved: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		Control:  "master-1", Certificates: func() ([]string, error) { return []string{"former", "own"}, nil },
	}
	host := func(name, ip string, control bool) ClusterHost {
		return ClusterHost{name, netip.MustParseAddr(ip), control}
	}
	hosts := []ClusterHost{
		host("master-1", "10.0.0.1", true), host("master-2", "10.0.0.7", true), host("worker-1", "10.0.0.2", false),
		host("worker-2", "10.0.0.3", false),
	}
	for name, c := range map[string]struct {
		change func(*ask)
		reason string
	}{
		"its own name and address": {func(*ask) {}, ""},
		"with key encipherment": {func(a *ask) {
			a.spec.Usages = append(a.spec.Usages, certificatesv1.UsageKeyEncipherment)
		}, ""},
		"another signer": {func(a *ask) {
			a.spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
		}, "signer"},
		"a token's":        {func(a *ask) { a.spec.Username = "system:bootstrap:abcdef" }, "no node"},
		"not of the group": {func(a *ask) { a.spec.Groups = nil }, "no node"},
		"another node":     {func(a *ask) { a.spec.Username = "system:node:master-1" }, "subject"},
		"another subject":  {func(a *ask) { a.request.Subject.CommonName = "kubernetes-admin" }, "subject"},
		"another group": {func(a *ask) {
			a.request.Subject.Organization = []string{"system:masters"}
		}, "subject"},
		"for a client": {func(a *ask) {
			a.spec.Usages = append(a.spec.Usages, certificatesv1.UsageClientAuth)
		}, "usage"},
		"for nothing":  {func(a *ask) { a.spec.Usages = nil }, "not for server auth"},
		"another name": {func(a *ask) { a.request.DNSNames = []string{"kubernetes.default.svc"} }, "the name"},
		"a stranger's address": {func(a *ask) {
			a.request.IPAddresses = []net.IP{net.ParseIP("10.0.0.9")}
		}, "host worker-1 has 10.0.0.2"},
		"the master's address": {func(a *ask) {
			a.request.IPAddresses = []net.IP{net.ParseIP("10.0.0.1")}
		}, "that of host master-1"},
		"a Service's address": {func(a *ask) {
			a.request.IPAddresses = []net.IP{net.ParseIP("10.96.0.1")}
		}, "cannot be a node's"},
		"loopback": {func(a *ask) {
			a.request.IPAddresses = []net.IP{net.ParseIP("127.0.0.1")}
		}, "cannot be a node's"},
		"the API server's name": {func(a *ask) { a.become("kubernetes.default.svc") }, "reserved"},
		"localhost":             {func(a *ask) { a.become("localhost") }, "reserved"},
		"a node that is not there": {func(a *ask) {
			a.become("worker-9")
			a.request.IPAddresses = nil
		}, "no node worker-9"},
		"an address that another host has leased": {func(a *ask) {
			a.request.IPAddresses = []net.IP{net.ParseIP("10.0.0.3")}
		}, "that of host worker-2"},
		"a control plane that is no node yet": {func(a *ask) {
			a.request.IPAddresses = []net.IP{net.ParseIP("10.0.0.7")}
		}, "that of host master-2"},
		"without a lease": {func(a *ask) {
			a.become("worker-3")
			a.request.IPAddresses = []net.IP{net.ParseIP("10.0.0.4")}
		}, ""},
		"without a lease, another node's": {func(a *ask) {
			a.become("worker-3")
			a.request.IPAddresses = []net.IP{net.ParseIP("10.0.0.8")}
		}, "that of node worker-1"},
		"without a lease, nobody's": {func(a *ask) {
			a.become("worker-3")
			a.request.IPAddresses = []net.IP{net.ParseIP("10.0.0.99")}
		}, "does not have"},
		"an address of which etcd does not know": {func(a *ask) {
			a.request.IPAddresses = []net.IP{net.ParseIP("10.0.0.8")}
		}, "host worker-1 has 10.0.0.2"},
		"this control plane by its kubelet": {func(a *ask) {
			a.become("master-1")
			a.request.IPAddresses = []net.IP{net.ParseIP("10.0.0.1")}
			a.spec.Extra = map[string]certificatesv1.ExtraValue{credentialID: {"X509SHA256=own"}}
		}, ""},
		"this control plane by its kubelet, right after a renewal": {func(a *ask) {
			a.become("master-1")
			a.request.IPAddresses = []net.IP{net.ParseIP("10.0.0.1")}
			a.spec.Extra = map[string]certificatesv1.ExtraValue{credentialID: {"X509SHA256=former"}}
		}, ""},
		"this control plane without a certificate": {func(a *ask) {
			a.become("master-1")
			a.request.IPAddresses = nil
		}, "its kubelet has not asked"},
		"this control plane by a token's holder": {func(a *ask) {
			a.become("master-1")
			a.request.IPAddresses = nil
			a.spec.Extra = map[string]certificatesv1.ExtraValue{credentialID: {"X509SHA256=another"}}
		}, "its kubelet has not asked"},
		"another control plane": {func(a *ask) {
			a.become("master-2")
			a.request.IPAddresses = nil
		}, "approves it itself"},
		"no name":        {func(a *ask) { a.request.DNSNames, a.request.IPAddresses = nil, nil }, "no name"},
		"a URI":          {func(a *ask) { a.request.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }, "URIs"},
		"a mail address": {func(a *ask) { a.request.EmailAddresses = []string{"a@b"} }, "mail"},
	} {
		t.Run(name, func(t *testing.T) {
			err := approver.Check(servingRequest(t, c.change), nodes, hosts)
			if c.reason == "" && err != nil || c.reason != "" &&
				(err == nil || !strings.Contains(err.Error(), c.reason)) {
				t.Errorf("got %v, want %q", err, c.reason)
			}
		})
	}
}

func servingRequest(t *testing.T, change func(*ask)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	a := &ask{
		request: x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: "system:node:worker-1", Organization: []string{"system:nodes"}},
			DNSNames: []string{"worker-1"}, IPAddresses: []net.IP{net.ParseIP("10.0.0.2")},
		},
		spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeletServingSignerName,
			Username:   "system:node:worker-1", Groups: []string{"system:nodes", "system:authenticated"},
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}
	change(a)
	der, err := x509.CreateCertificateRequest(rand.Reader, &a.request, newKey(t))
	must.NoError(t, err)
	a.spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return &certificatesv1.CertificateSigningRequest{Spec: a.spec}
}
