package join

import (
	"net"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// TestWhomATokenLetsIn: a host that is no control plane, as a node and nothing
// else.
func TestWhomATokenLetsIn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ask)
		reason string
	}{
		"a worker":          {func(*ask) {}, ""},
		"a control plane":   {func(a *ask) { a.become("master-1"); a.request.DNSNames = nil }, "is a control plane"},
		"an administrator":  {func(a *ask) { a.request.Subject.CommonName = "kubernetes-admin" }, "subject"},
		"nobody":            {func(a *ask) { a.request.Subject.CommonName = "system:node:" }, "subject"},
		"no name of a node": {func(a *ask) { a.request.Subject.CommonName = "system:node:a:b" }, "subject"},
		"with another group": {func(a *ask) {
			a.request.Subject.Organization = []string{"system:nodes", "system:masters"}
		}, "subject"},
		"for serving too": {func(a *ask) {
			a.spec.Usages = append(a.spec.Usages, certificatesv1.UsageServerAuth)
		}, "usage"},
		"for no client": {func(a *ask) { a.spec.Usages = a.spec.Usages[:1] }, "client auth"},
		"with an address too": {func(a *ask) {
			a.request.IPAddresses = []net.IP{net.ParseIP("10.0.0.1")}
		}, "addresses"},
	} {
		t.Run(name, func(t *testing.T) {
			csr := servingRequest(t, func(a *ask) {
				a.request.DNSNames, a.request.IPAddresses = nil, nil
				a.spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature,
					certificatesv1.UsageClientAuth}
				c.change(a)
			})
			_, err := checkNode(csr, []string{"master-1"})
			if c.reason == "" && err != nil || c.reason != "" &&
				(err == nil || !strings.Contains(err.Error(), c.reason)) {
				t.Errorf("got %v, want %q", err, c.reason)
			}
		})
	}
}
