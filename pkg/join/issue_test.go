package join

import (
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestWhomFlannelsCertificateIsFor: a host gets one for its own user of etcd
// only. The token's holder may be any host that is no control plane.
func TestWhomFlannelsCertificateIsFor(t *testing.T) {
	issuer := Issuer{User: func(host string) string { return "flannel:" + host }}
	token := certificatesv1.CertificateSigningRequestSpec{
		Username: "system:bootstrap:abcdef", Groups: Scope{Kind: ForWorker}.groups(),
	}
	node := certificatesv1.CertificateSigningRequestSpec{Username: "system:node:worker-1", Groups: []string{nodesGroup}}
	for name, c := range map[string]struct {
		by           certificatesv1.CertificateSigningRequestSpec
		user, reason string
	}{
		"a token's":               {token, "flannel:worker-1", ""},
		"its own":                 {node, "flannel:worker-1", ""},
		"that of another node":    {node, "flannel:worker-2", "asks for worker-2"},
		"that of a control plane": {token, "flannel:master-1", "is a control plane"},
		"root":                    {token, "root", "subject"},
		"the old user of all":     {token, "flannel", "subject"},
		"nobody":                  {token, "", "subject"},
		"a user without a name":   {token, "flannel:", "subject"},
		"a name that no node has": {token, "flannel:root,CN=root", "subject"},
		"twice the prefix":        {token, "flannel:flannel:worker-1", "subject"},
		"a user's": {certificatesv1.CertificateSigningRequestSpec{Username: "jane"},
			"flannel:worker-1", "no node"},
		"by name a node, but not by group": {certificatesv1.CertificateSigningRequestSpec{Username: "system:node:worker-1"}, "flannel:worker-1", "no node"},
	} {
		t.Run(name, func(t *testing.T) {
			request, _, err := pki.NewRequest(c.user)
			must.NoError(t, err)
			csr := &certificatesv1.CertificateSigningRequest{Spec: c.by}
			csr.Spec.Request = request
			host, public, err := issuer.check(csr, []string{"master-1"})
			if c.reason == "" && (err != nil || host != "worker-1" || public == nil) || c.reason != "" &&
				(err == nil || !strings.Contains(err.Error(), c.reason)) {
				t.Errorf("got %s, %v, want %q", host, err, c.reason)
			}
		})
	}
}
