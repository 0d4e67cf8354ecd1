package controlplane

import (
	"slices"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestUserKubeconfig(t *testing.T) {
	c := fresh(t)
	c.ExtraNames = []string{"k8s.example.com"}
	issue(t, c)
	for server, want := range map[string]string{
		"": "https://10.0.0.1:6443", "https://k8s.example.com": "https://k8s.example.com",
	} {
		data, err := c.UserKubeconfig(User{
			Name: "anna", Groups: []string{"dev", "ops"}, Life: 8 * time.Hour, Server: server,
		})
		if err != nil {
			t.Fatal(err)
		}
		config, err := pki.ParseKubeconfig(data)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := pki.ParseCertificate(config.Pair.Cert)
		if err != nil {
			t.Fatal(err)
		}
		if config.Server != want || cert.Subject.CommonName != "anna" ||
			!slices.Equal(cert.Subject.Organization, []string{"dev", "ops"}) ||
			!cert.NotAfter.Equal(now.Add(8*time.Hour)) {
			t.Errorf("server %s, subject %s, until %s", config.Server, cert.Subject, cert.NotAfter)
		}
	}
}

func TestUserKubeconfigIsRefused(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	for want, users := range map[string][]User{
		"user": {{Name: "system:admin"}, {Name: KubeletClientUser},
			{Name: "anna", Groups: []string{"dev", "system:masters"}}},
		"server": {{Name: "anna", Server: "https://k8s.example.com:6443"},
			{Name: "anna", Server: "http://10.0.0.1:6443"},
			{Name: "anna", Server: "10.0.0.1"}},
	} {
		for _, u := range users {
			_, err := c.UserKubeconfig(u)
			if found := step.Problems(err); len(found) != 1 || found[0].Name != want {
				t.Errorf("%+v: %v, want the problem %s", u, err, want)
			}
		}
	}
}
