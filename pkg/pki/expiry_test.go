package pki

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestExpiryProblem(t *testing.T) {
	a := authority(t)
	pair, err := a.Issue(server, now)
	must.NoError(t, err)
	files := map[string][]byte{"ca": a.PEM().Cert, "leaf": pair.Cert}
	read := func(path string) ([]byte, error) {
		if data, ok := files[path]; ok {
			return data, nil
		}
		return nil, fs.ErrNotExist
	}
	look := func(at time.Time) (all []CertificateStatus) {
		for _, name := range []string{"ca", "leaf", "missing"} {
			all = append(all, CertificateFile{Name: name, Path: name, Remedy: "renew " + name}.Inspect(read, at))
		}
		return all
	}
	const day = 24 * time.Hour
	for _, c := range []struct {
		after time.Duration
		want  []string
	}{
		{0, nil},
		{LeafLife - 31*day, nil},
		{LeafLife - 29*day, []string{"soon: leaf (leaf is the first, on 2027-03-01); renew leaf [certificate-expiry]"}},
		{LeafLife + day, []string{"soon: leaf (leaf"}},
		{AuthorityLife - day, []string{"soon: ca, leaf (leaf is the first", "; renew ca; renew leaf "}},
	} {
		all := look(now.Add(c.after))
		if first := FirstToExpire(all); first == nil || first.Name != "leaf" {
			t.Errorf("after %s: first is %+v", c.after, first)
		}
		err := ExpiryProblem(all)
		if len(step.Problems(err)) != min(1, len(c.want)) {
			t.Errorf("after %s: %v", c.after, err)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("after %s: %v, want %s", c.after, err, want)
			}
		}
	}
	if FirstToExpire(nil) != nil || ExpiryProblem(nil) != nil {
		t.Error("a host without certificates has no expiry")
	}
}
