package controlplane

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// User is a person or a program that gets a kubeconfig with a client certificate
// of its own.
type User struct {
	Name   string
	Groups []string
	Life   time.Duration // how long the certificate is valid
	Server string        // URL; empty: the API server of this host
}

// UserKubeconfig issues a client certificate and returns a kubeconfig that
// contains it. The certificate grants no rights: RBAC does, for its name and its
// groups. It cannot be revoked, so it should expire soon.
func (p PKI) UserKubeconfig(u User) ([]byte, error) {
	for _, name := range append([]string{u.Name}, u.Groups...) {
		if strings.HasPrefix(name, "system:") {
			return nil, &step.Problem{Name: "user", Text: fmt.Sprintf("user or group %q: names that begin with system: belong to components of Kubernetes", name),
				Remedy: "choose another name, and grant it rights with a RoleBinding or a ClusterRoleBinding", Firm: true}
		}
	}
	if err := certifies(p.Files, u.Server); err != nil {
		return nil, err
	}
	return p.kubeconfig(cmp.Or(u.Server, p.Server()), pki.Request{CommonName: u.Name, Organizations: u.Groups, Client: true, Life: u.Life})
}

// kubeconfig issues a client certificate of the cluster and returns a kubeconfig
// that contains it.
func (p PKI) kubeconfig(server string, r pki.Request) ([]byte, error) {
	signer, err := readSigner(p.Files, clusterCA)
	if err != nil {
		return nil, err
	}
	own, err := signer.Issue(r, p.now())
	if err != nil {
		return nil, err
	}
	return pki.Kubeconfig{Server: server, Authority: signer.PEM().Cert, User: r.CommonName, Pair: own}.Encode()
}

// certifies refuses a server whose name the API server's certificate lacks.
func certifies(files host.Files, server string) error {
	if server == "" {
		return nil
	}
	at, err := url.Parse(server)
	if err != nil || at.Scheme != "https" || at.Hostname() == "" {
		return &step.Problem{Name: "server", Text: fmt.Sprintf("server %q is no URL of an API server", server), Remedy: "write it as https://NAME:6443", Firm: true}
	}
	data, err := files.Read(apiserver + ".crt")
	if err != nil {
		return err
	}
	cert, err := pki.ParseCertificate(data)
	if err != nil {
		return fmt.Errorf("%s.crt: %w", apiserver, err)
	}
	if cert.VerifyHostname(at.Hostname()) != nil {
		return &step.Problem{Name: "server", Text: "the API server's certificate does not contain " + at.Hostname(),
			Remedy: "add it with `kube-bootstrap master --tls-san " + at.Hostname() + "` on each control plane", Firm: true}
	}
	return nil
}
