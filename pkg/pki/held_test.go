package pki

import (
	"io/fs"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestLook(t *testing.T) {
	a := authority(t)
	pair, err := a.Issue(CertificateRequest{CommonName: "kubernetes-admin", Client: true}, now)
	must.NoError(t, err)
	config, err := Kubeconfig{Server: "https://10.0.0.1:6443", Authority: a.PEM().Cert, User: "kubernetes-admin",
		Pair: pair}.Encode()
	must.NoError(t, err)
	files := map[string][]byte{
		"client.crt": pair.Cert, "admin.conf": config,
		"cut.crt": pair.Cert[:100], "cut.conf": config[:20], "token.conf": []byte("apiVersion: v1\nkind: Config\n"),
	}
	read := func(path string) ([]byte, error) {
		if data, ok := files[path]; ok {
			return data, nil
		}
		return nil, fs.ErrNotExist
	}
	const day = 24 * time.Hour
	for _, c := range []struct {
		path    string
		after   time.Duration
		days    int
		problem string
	}{
		{"client.crt", 0, 365, ""},
		{"admin.conf", 0, 365, ""},
		{"client.crt", LeafLife - 3*day, 3, ""},
		{"client.crt", LeafLife + 2*day, -2, "expired"},
		{"none.crt", 0, 0, "missing"},
		{"cut.crt", 0, 0, ErrNoCertificate.Error()},
		{"token.conf", 0, 0, ErrNoContext.Error()},
	} {
		l := CertificateFile{Path: c.path}.Inspect(read, now.Add(c.after))
		if l.DaysLeft != c.days || l.Problem != c.problem ||
			l.Expires.IsZero() != (c.problem != "" && c.problem != "expired") {
			t.Errorf("%s after %s: %+v", c.path, c.after, l)
		}
	}
	if l := (CertificateFile{Path: "cut.conf"}).Inspect(read, now); l.Problem == "" {
		t.Errorf("a kubeconfig that is cut: %+v", l)
	}
}
