package host_test

import (
	"bytes"
	"encoding/pem"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestClientTLSShowsTheRenewedCertificate(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	if _, err := host.ClientTLS(files, "/ca.crt", "", ""); err == nil {
		t.Error("an authority that is missing must be an error")
	}
	ca, err := pki.NewAuthority("etcd-ca", nil, time.Now())
	must.NoError(t, err)
	must.NoError(t, files.Put([]host.File{{Path: "/ca.crt", Data: ca.PEM().Cert}, {Path: "/none.crt"}}))
	if _, err := host.ClientTLS(files, "/ca.crt", "/c.crt", "/c.key"); err == nil {
		t.Error("a pair that is missing must be an error")
	}
	if _, err := host.ClientTLS(files, "/none.crt", "", ""); err == nil {
		t.Error("a file without an authority must be an error")
	}
	if config, err := host.ClientTLS(files, "/ca.crt", "", ""); err != nil || config.GetClientCertificate != nil {
		t.Errorf("a client without a certificate: %v", err)
	}
	issue := func() []byte {
		pair, err := ca.Issue(pki.CertificateRequest{CommonName: "flannel", Client: true}, time.Now())
		must.NoError(t, err)
		must.NoError(t, files.Put([]host.File{{Path: "/c.crt", Data: pair.Cert}, {Path: "/c.key", Data: pair.Key}}))
		block, _ := pem.Decode(pair.Cert)
		return block.Bytes
	}
	issue()
	config, err := host.ClientTLS(files, "/ca.crt", "/c.crt", "/c.key")
	must.NoError(t, err)
	renewed := issue()
	if pair, err := config.GetClientCertificate(nil); err != nil || !bytes.Equal(pair.Certificate[0], renewed) {
		t.Errorf("the old certificate is shown: %v", err)
	}
}
