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

func TestClientPairShowsTheRenewedCertificate(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	if _, err := host.ClientPair(files, "/c.crt", "/c.key"); err == nil {
		t.Error("a pair that is missing must be an error")
	}
	ca, err := pki.NewAuthority("etcd-ca", nil, time.Now())
	must.NoError(t, err)
	issue := func() []byte {
		pair, err := ca.Issue(pki.Request{CommonName: "flannel", Client: true}, time.Now())
		must.NoError(t, err)
		must.NoError(t, files.Put([]host.File{{Path: "/c.crt", Data: pair.Cert}, {Path: "/c.key", Data: pair.Key}}))
		block, _ := pem.Decode(pair.Cert)
		return block.Bytes
	}
	issue()
	show, err := host.ClientPair(files, "/c.crt", "/c.key")
	must.NoError(t, err)
	renewed := issue()
	if pair, err := show(nil); err != nil || !bytes.Equal(pair.Certificate[0], renewed) {
		t.Errorf("the old certificate is shown: %v", err)
	}
}
