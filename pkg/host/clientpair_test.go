package host_test

import (
	"bytes"
	"encoding/pem"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

func TestClientPairShowsTheRenewedCertificate(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	if _, err := host.ClientPair(files, "/c.crt", "/c.key"); err == nil {
		t.Error("a pair that is missing must be an error")
	}
	ca, err := pki.NewAuthority("etcd-ca", nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	issue := func() []byte {
		pair, err := ca.Issue(pki.Request{CommonName: "flannel", Client: true}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := files.Put([]host.File{{Path: "/c.crt", Data: pair.Cert}, {Path: "/c.key", Data: pair.Key}}); err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(pair.Cert)
		return block.Bytes
	}
	issue()
	show, err := host.ClientPair(files, "/c.crt", "/c.key")
	if err != nil {
		t.Fatal(err)
	}
	renewed := issue()
	if pair, err := show(nil); err != nil || !bytes.Equal(pair.Certificate[0], renewed) {
		t.Errorf("the old certificate is shown: %v", err)
	}
}
