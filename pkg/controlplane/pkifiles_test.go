package controlplane

import (
	"testing"
)

func TestEveryIssuedCertificateIsListed(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	listed := map[string]bool{}
	for _, held := range Held() {
		one := held.Look(c.Files.Read, now)
		if one.Problem != "" || one.Purpose == "" || one.Signer == "" || listed[one.Name] {
			t.Errorf("%+v", one)
		}
		listed[one.Name] = true
	}
	if len(listed) != len(authorities)+len(c.leaves()) {
		t.Errorf("%d certificates are listed", len(listed))
	}
	for _, name := range []string{"apiserver", "etcd-server", "etcd-ca", "front-proxy-client", "admin.conf"} {
		if !listed[name] {
			t.Errorf("%s is not listed: %v", name, listed)
		}
	}
}
