// Package apiserver reaches the API server of a cluster from this machine, by
// the front that leads to any control plane that is ready.
package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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
	data, err := io.ReadAll(io.LimitReader(file, largest+1))
	if err == nil && len(data) > largest {
		err = fmt.Errorf("%s of %s has more than %d bytes; remove it and run `kube-bootstrap master` there", AdminKubeconfig, master.Name, largest)
	}
	if err != nil {
		return nil, err
	}
	url, err := urlOf(ctx, s)
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
	if cluster == nil || user == nil || len(cluster.CertificateAuthorityData) == 0 || len(user.ClientCertificateData) == 0 || len(user.ClientKeyData) == 0 {
		return nil, fmt.Errorf("%s: context %q has no authority, certificate or key; remove it and run `kube-bootstrap master` on the host",
			AdminKubeconfig, given.CurrentContext)
	}
	config := api.NewConfig()
	config.Clusters[name.Cluster] = &api.Cluster{Server: url, TLSServerName: certName, CertificateAuthorityData: cluster.CertificateAuthorityData}
	config.AuthInfos[name.AuthInfo] = &api.AuthInfo{ClientCertificateData: user.ClientCertificateData, ClientKeyData: user.ClientKeyData}
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
		return kube.KubeconfigOf(data)()
	}
}

// FrontName returns the name of the container in front of the control planes.
// It contains a dot, which no host name does.
func FrontName(cluster string) string { return cluster + ".api" }

// URL returns the URL at which this machine reaches the API servers of a cluster.
func URL(ctx context.Context, options session.Options) (string, error) {
	return session.Get(ctx, options, session.Scope{}, func(s *session.Session, _ topology.State) (string, error) { return urlOf(ctx, s) })
}

// urlOf returns the front's own address if this machine has a route to the
// cluster's network. An engine in a virtual machine or on another machine has
// no such route. There, urlOf returns the published port.
func urlOf(ctx context.Context, s *session.Session) (string, error) {
	front, _, err := s.Cluster().Attached(ctx, FrontName(s.Name))
	if err != nil {
		return "", s.NoAnswer(err)
	}
	if !front.Running {
		return "", &step.Problem{Name: "front-off", Text: "container " + FrontName(s.Name) + ", which leads to the control planes, does not run",
			Remedy: "run `kube-bootstrap cluster up --name " + s.Name + "`"}
	}
	engine, err := s.Engine.MachineName(ctx)
	if err != nil {
		return "", err
	}
	if engine != "" {
		return publishedAt(engine, front)
	}
	routes, err := links.Routes()
	if err != nil {
		return "", fmt.Errorf("routes: %w", err)
	}
	if slices.ContainsFunc(routes, func(r links.Route) bool { return r.Dst.Bits() > 0 && r.Dst.Contains(front.Addr) }) {
		for inside := range front.Ports {
			return "https://" + netip.AddrPortFrom(front.Addr, inside).String(), nil
		}
	}
	return publishedAt("127.0.0.1", front)
}

func publishedAt(address string, front machines.Attached) (string, error) {
	for _, port := range front.Ports {
		return "https://" + net.JoinHostPort(address, strconv.Itoa(int(port))), nil
	}
	return "", errors.New("the container in front of the control planes publishes no port")
}
