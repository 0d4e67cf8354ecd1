package apiserver

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

// AdminKubeconfig is the path of the admin kubeconfig on a control plane.
const AdminKubeconfig = "/etc/kubernetes/admin.conf"

// certName is a name for which the certificates of all API servers are valid.
const certName = "kubernetes"

// Kubeconfig returns the admin kubeconfig of a cluster for use on this machine.
func Kubeconfig(ctx context.Context, options session.Options) ([]byte, error) {
	return session.Get(ctx, options, session.Scope{}, func(s *session.Session, _ topology.State) ([]byte, error) { return Read(ctx, s, "") })
}

// Read reads the admin kubeconfig from the first running control plane other
// than the node named except. Its server address leads to any control plane.
func Read(ctx context.Context, s *session.Session, except string) ([]byte, error) {
	master, err := s.RunningMaster(ctx, except)
	if err != nil {
		return nil, err
	}
	file, err := s.Node(master.Name).Get(ctx, AdminKubeconfig)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	url, err := urlOf(ctx, s)
	if err != nil {
		return nil, err
	}
	return withServer(data, url)
}

func withServer(kubeconfig []byte, url string) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", AdminKubeconfig, err)
	}
	for _, c := range config.Clusters {
		c.Server, c.TLSServerName = url, certName
	}
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
		return kube.KubeconfigOf(data)()
	}
}
