package join

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/clientcmd"
	bootstrap "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/join/certkey"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// TargetCluster is the cluster to join, as the user names it.
type TargetCluster struct {
	Server string   // "10.0.0.1:6443"
	Host   string   // the name that this host joins with
	Kind   HostKind // of this host
	Token  Token
	CAHash string // "sha256:..."
	// Key, if there is one, asks for what control planes share.
	Key certkey.Key
}

// Discover makes sure that Server is the cluster that the user means, shows it the token, and returns its join
// data. Each way to fail is a *step.Problem of its own name. It changes nothing, here or there.
func Discover(ctx context.Context, target TargetCluster) (Data, error) {
	d, err := newDiscovery(target)
	if err != nil {
		return Data{}, err
	}
	defer d.http.CloseIdleConnections()
	server, err := d.cluster(ctx)
	if err != nil {
		return Data{}, err
	}
	data, err := d.data(ctx)
	if err == nil && !target.Key.IsZero() {
		data.Shared, err = d.shared(ctx)
	}
	data.Server = server
	return data, err
}

type discovery struct {
	TargetCluster
	http *http.Client
	// ca is the authority of CAHash, once an API server has shown its certificate. An abandoned request may set
	// it too.
	ca atomic.Pointer[x509.Certificate]
}

func newDiscovery(target TargetCluster) (*discovery, error) {
	host, _, err := net.SplitHostPort(target.Server)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	if target.CAHash, err = parseCAHash(target.CAHash); err != nil {
		return nil, err
	}
	d := &discovery{TargetCluster: target}
	config := pinned(target.Server, host, target.CAHash, d.ca.Store)
	// No proxy of the environment: the token goes to the control plane and nowhere else.
	d.http = &http.Client{
		Transport: &http.Transport{TLSClientConfig: config, DialContext: (&net.Dialer{}).DialContext},
		// A redirect could lead the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return d, nil
}

// cluster makes sure that the server and the token are the right ones, and returns the server's own address.
func (d *discovery) cluster(ctx context.Context) (server string, err error) {
	if err := d.ready(ctx); err != nil {
		return "", err
	}
	if server, err = d.clusterInfo(ctx); err != nil {
		return "", err
	}
	return server, d.checkScope(ctx)
}

// learning is how long an API server may refuse a token that was created just now: it knows the tokens from a
// watch.
const learning = time.Second

// clusterInfo returns the API server's own address out of the signed cluster-info. The signature proves, apart
// from TLS, that it was written by someone who knows the token.
func (d *discovery) clusterInfo(ctx context.Context) (server string, err error) {
	var info corev1.ConfigMap
	// The controller manager signs cluster-info for a new token only after a moment. It never signs for an
	// unknown token.
	// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/controller/bootstrap/bootstrapsigner.go#L227-L243
	q := &question{
		method: http.MethodGet, path: "/api/v1/namespaces/kube-public/configmaps/cluster-info",
		what: "its cluster-info", into: &info,
	}
	begun := time.Now()
	err = d.until(ctx, q, func(ctx context.Context) error {
		err := d.read(ctx, q)
		switch {
		case err == nil && info.Data[bootstrap.JWSSignatureKeyPrefix+d.Token.ID] == "":
			return unsigned(d.Server, d.Token)
		case isProblem(err, tokenUnknown) && time.Since(begun) < learning:
			return err
		}
		return retryable(err)
	})
	if err != nil {
		return "", err
	}
	return d.trusted(info)
}

func (d *discovery) trusted(info corev1.ConfigMap) (string, error) {
	kubeconfig := info.Data[bootstrap.KubeConfigKey]
	signature := info.Data[bootstrap.JWSSignatureKeyPrefix+d.Token.ID]
	if !jws.DetachedTokenIsValid(signature, kubeconfig, d.Token.ID, d.Token.secret) {
		return "", forged(d.Server)
	}
	config, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil {
		return "", notAControlPlane(d.Server, "a cluster-info that can be read")
	}
	for _, cluster := range config.Clusters {
		if hash, err := CAHashOf(cluster.CertificateAuthorityData); err != nil || hash != d.CAHash {
			return "", forged(d.Server)
		}
		return cluster.Server, nil
	}
	return "", notAControlPlane(d.Server, "a cluster-info with a cluster in it")
}

// checkScope asks the API server what the token is for, so that a host that the control planes would refuse
// later is not touched.
func (d *discovery) checkScope(ctx context.Context) error {
	const review = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	var self authenticationv1.SelfSubjectReview
	q := &question{
		method: http.MethodPost, path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", body: review,
		what: "what the token is for", into: &self,
	}
	if err := d.ask(ctx, q); err != nil {
		return err
	}
	scope := scopeOf(self.Status.UserInfo.Groups)
	switch {
	case scope.Kind != d.Kind:
		return otherKind(d.Token, scope.Kind, d.Kind)
	case scope.Node != "" && scope.Node != d.Host:
		return otherNode(d.Token, scope.Node, d.Host)
	}
	return nil
}

func (d *discovery) data(ctx context.Context) (Data, error) {
	var settings corev1.ConfigMap
	var registry corev1.Secret
	var server struct{ GitVersion string }
	for _, part := range []struct {
		path, what string
		into       any
	}{
		{"/api/v1/namespaces/kube-system/configmaps/" + settingsName, "its settings", &settings},
		{"/api/v1/namespaces/kube-system/secrets/" + registryName, "the settings of its registry", &registry},
		{"/version", "its version", &server},
	} {
		if err := d.ask(ctx, &question{method: http.MethodGet, path: part.path, what: part.what,
			into: part.into}); err != nil {
			return Data{}, err
		}
	}
	planes, err := d.controlPlanes(ctx)
	return Data{
		ClusterCA:     pki.EncodeCertificate(d.ca.Load()),
		ServerVersion: server.GitVersion,
		Settings:      []byte(settings.Data[settingsKey]),
		Registry:      registry.Data[registryKey],
		EtcdCA:        []byte(settings.Data[etcdCAKey]),
		VerifyKey:     []byte(settings.Data[verifyKey]),
		ControlPlanes: planes,
	}, err
}

// controlPlanes returns the addresses of the API servers. A control plane of an earlier version of
// kube-bootstrap does not permit that.
func (d *discovery) controlPlanes(ctx context.Context) (all []string, err error) {
	var slice discoveryv1.EndpointSlice
	q := &question{
		method: http.MethodGet, path: "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
		what: "the addresses of the control planes", into: &slice,
	}
	if err := d.ask(ctx, q); err != nil && !isProblem(err, notJoinable) {
		return nil, err
	}
	for _, endpoint := range slice.Endpoints {
		all = append(all, endpoint.Addresses...)
	}
	return all, nil
}
