// Package apiserver reaches the API server of a cluster from this machine, by
// the URL that the provider leads to any control plane that is ready.
package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

// AdminKubeconfig is the path of the admin kubeconfig on a control plane.
const AdminKubeconfig = "/etc/kubernetes/admin.conf"

// certName is a name for which the certificates of all API servers are valid.
const certName = "kubernetes"

// Kubeconfig returns the admin kubeconfig of a cluster for use on this machine.
func Kubeconfig(ctx context.Context, options session.Selection) ([]byte, error) {
	return session.Get(ctx, options, session.Requirements{},
		func(s *session.Session, _ topology.State) ([]byte, error) { return Read(ctx, s, "") })
}

// Read reads the admin kubeconfig from the first running control plane other
// than the node named except. Its server address leads to any control plane.
func Read(ctx context.Context, s *session.Session, except string) ([]byte, error) {
	controlPlane, err := s.RunningControlPlane(ctx, except)
	if err != nil {
		return nil, err
	}
	file, err := s.Node(controlPlane.Name).Get(ctx, AdminKubeconfig)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, largest+1))
	if err == nil && len(data) > largest {
		err = fmt.Errorf("%s of %s has more than %d bytes; remove it and run `kube-bootstrap master` there",
			AdminKubeconfig, controlPlane.Name, largest)
	}
	if err != nil {
		return nil, err
	}
	url, err := s.Provider.URL(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	return withServer(data, url)
}

// largest is larger than a kubeconfig with certificates, in bytes.
const largest = 1 << 20

// withServer returns a kubeconfig with the authority, the certificate and the key of
// another one, and nothing else of it: root of the node could have added a program that
// kubectl would run on this machine, or the path of a file of this machine.
func withServer(kubeconfig []byte, url string) ([]byte, error) {
	given, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", AdminKubeconfig, err)
	}
	name := cmp.Or(given.Contexts[given.CurrentContext], &api.Context{})
	cluster, user := given.Clusters[name.Cluster], given.AuthInfos[name.AuthInfo]
	if cluster == nil || user == nil || len(cluster.CertificateAuthorityData) == 0 ||
		len(user.ClientCertificateData) == 0 || len(user.ClientKeyData) == 0 {
		return nil, fmt.Errorf("%s: context %q has no authority, certificate or key; remove it and run "+
			"`kube-bootstrap master` on the host",
			AdminKubeconfig, given.CurrentContext)
	}
	config := api.NewConfig()
	config.Clusters[name.Cluster] = &api.Cluster{
		Server: url, TLSServerName: certName, CertificateAuthorityData: cluster.CertificateAuthorityData,
	}
	config.AuthInfos[name.AuthInfo] = &api.AuthInfo{
		ClientCertificateData: user.ClientCertificateData, ClientKeyData: user.ClientKeyData,
	}
	config.Contexts[given.CurrentContext] = &api.Context{Cluster: name.Cluster, AuthInfo: name.AuthInfo}
	config.CurrentContext = given.CurrentContext
	return clientcmd.Write(*config)
}

// Connect returns the connection to the API server. It does not need the node
// named except, which is about to leave the cluster.
func Connect(ctx context.Context, s *session.Session, except string) kube.Connect {
	return func() (*rest.Config, error) {
		data, err := Read(ctx, s, except)
		if err != nil {
			return nil, err
		}
		return Through(s, data)()
	}
}

// Through returns the connection to the API server of a kubeconfig that Read has returned.
func Through(s *session.Session, kubeconfig []byte) kube.Connect {
	return func() (*rest.Config, error) {
		config, err := kube.KubeconfigOf(kubeconfig)()
		if err == nil {
			config.Dial = s.Provider.Dial
		}
		return config, err
	}
}

// URL returns the URL at which this machine reaches the API servers of a cluster.
func URL(ctx context.Context, options session.Selection) (string, error) {
	return session.Get(ctx, options, session.Requirements{},
		func(s *session.Session, _ topology.State) (string, error) {
			return s.Provider.URL(ctx, s.Name)
		})
}
