package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	superAdmin = "kubernetes-super-admin"
	superGroup = "system:masters" // the API server authorizes it without RBAC
	grantLife  = 10 * time.Minute // of the certificate with which GrantAdmin creates bindings
)

// GrantAdmin gives the group of AdminConf all rights, and the API server the rights
// that it needs on kubelets. It does so with a certificate of its own, which it keeps
// in memory, because administrators may remove SuperAdminConf.
func GrantAdmin(p PKI) step.Step {
	return step.Step{
		ID: "grant-admin", Name: "grant the administrators their rights",
		Check: func(ctx context.Context) (diff step.Diff, err error) {
			client, err := adminClient(p.Files)
			if err != nil && !errors.Is(err, errNoConfig) {
				return nil, err
			}
			for _, b := range bindings() {
				has, err := bound(ctx, client, b.Name)
				if err != nil {
					return nil, kube.NoAnswer(err)
				}
				if !has {
					diff = append(diff, "bind "+b.Subjects[0].Name+" to "+b.RoleRef.Name)
				}
			}
			return diff, nil
		},
		Apply: func(ctx context.Context) error { return grant(ctx, p) },
	}
}

func grant(ctx context.Context, p PKI) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	super, err := p.superClient()
	if err != nil {
		return err
	}
	for _, b := range bindings() {
		_, err := super.RbacV1().ClusterRoleBindings().Create(ctx, &b, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	client, err := adminClient(p.Files)
	if err != nil {
		return err
	}
	// The API server applies a new binding as soon as its watch reports it.
	return step.Until(ctx, func(ctx context.Context) error {
		has, err := bound(ctx, client, AdminGroup)
		if err == nil && !has {
			err = fmt.Errorf("the API server does not apply the binding of %s yet", AdminGroup)
		}
		return err
	}, nil)
}

// superClient returns a client with all rights, also where RBAC grants none.
func (p PKI) superClient() (kubernetes.Interface, error) {
	data, err := p.kubeconfig(p.Server(), pki.CertificateRequest{
		CommonName: superAdmin, Organizations: []string{superGroup}, Client: true, Life: grantLife,
	})
	if err != nil {
		return nil, err
	}
	return kube.KubeconfigOf(data).Client()
}

// bound reports whether the administrators can read a ClusterRoleBinding. Without their
// own binding they may not. client is nil if the cluster does not exist yet.
func bound(ctx context.Context, client kubernetes.Interface, name string) (bool, error) {
	if client == nil {
		return false, nil
	}
	_, err := client.RbacV1().ClusterRoleBindings().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	return err == nil, err
}

func bindings() []rbacv1.ClusterRoleBinding {
	bind := func(name, role, kind, subject string) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: subject}},
		}
	}
	return []rbacv1.ClusterRoleBinding{
		bind(AdminGroup, "cluster-admin", rbacv1.GroupKind, AdminGroup),
		bind("kube-bootstrap:apiserver-kubelet-client", "system:kubelet-api-admin", rbacv1.UserKind, KubeletClientUser),
	}
}

// User is a person or a program that gets a kubeconfig with its own client certificate.
type User struct {
	Name   string
	Groups []string
	Life   time.Duration // how long the certificate is valid
	Server string        // URL; empty: the API server of this host
}

// UserKubeconfig returns a kubeconfig with a new client certificate. RBAC grants rights
// to its name and groups. It cannot be revoked, so it should expire soon.
func (p PKI) UserKubeconfig(u User) ([]byte, error) {
	for _, name := range append([]string{u.Name}, u.Groups...) {
		if strings.HasPrefix(name, "system:") || name == KubeletClientUser {
			return nil, &step.Problem{Name: "user",
				Text: fmt.Sprintf("user or group %q: this name and names that begin with system: belong to "+
					"components of Kubernetes", name),
				Remedy: "choose another name, and grant it rights with a RoleBinding or a ClusterRoleBinding",
				Firm:   true}
		}
	}
	if err := certifies(p.Files, u.Server); err != nil {
		return nil, err
	}
	return p.kubeconfig(cmp.Or(u.Server, p.Server()),
		pki.CertificateRequest{CommonName: u.Name, Organizations: u.Groups, Client: true, Life: u.Life})
}

// kubeconfig returns a kubeconfig with a new client certificate of the cluster.
func (p PKI) kubeconfig(server string, r pki.CertificateRequest) ([]byte, error) {
	signer, err := Signer(p.Files, ClusterCA)
	if err != nil {
		return nil, err
	}
	own, err := signer.Issue(r, p.Now())
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
		return &step.Problem{
			Name: "server", Text: fmt.Sprintf("server %q is no URL of an API server", server),
			Remedy: "write it as https://NAME:6443", Firm: true,
		}
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
			Remedy: "add it with `kube-bootstrap master --tls-san " + at.Hostname() + "` on each control plane",
			Firm:   true}
	}
	return nil
}
