package pki

import (
	"errors"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ErrNoContext says that a kubeconfig has no usable current context.
var ErrNoContext = errors.New("kubeconfig has no complete current context")

// Kubeconfig is what a client needs to reach the API server: one server, one
// user. The user shows Pair, the pair in the file PairFile, or Token.
type Kubeconfig struct {
	Server    string // URL
	Authority []byte // PEM
	User      string
	Pair      Pair
	PairFile  string
	Token     string
}

// Encode returns the kubeconfig file.
func (k Kubeconfig) Encode() ([]byte, error) {
	const cluster = "kubernetes"
	context := k.User + "@" + cluster
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{cluster: {
			Server: k.Server, CertificateAuthorityData: k.Authority,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{k.User: {
			ClientCertificateData: k.Pair.Cert, ClientKeyData: k.Pair.Key,
			ClientCertificate: k.PairFile, ClientKey: k.PairFile, Token: k.Token,
		}},
		Contexts:       map[string]*clientcmdapi.Context{context: {Cluster: cluster, AuthInfo: k.User}},
		CurrentContext: context,
	})
}

// ParseKubeconfig reads the current context of a kubeconfig file.
func ParseKubeconfig(data []byte) (Kubeconfig, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return Kubeconfig{}, err
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || config.Clusters[context.Cluster] == nil || config.AuthInfos[context.AuthInfo] == nil {
		return Kubeconfig{}, ErrNoContext
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	return Kubeconfig{
		Server:    cluster.Server,
		Authority: cluster.CertificateAuthorityData,
		User:      context.AuthInfo,
		Pair:      Pair{Cert: user.ClientCertificateData, Key: user.ClientKeyData},
		PairFile:  user.ClientCertificate,
		Token:     user.Token,
	}, nil
}
