package join

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	bootstrap "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// authority is a certificate authority made for one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key := newKey(t)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	must.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	must.NoError(t, err)
	return authority{cert, key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(t, err)
	return key
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// serving is a certificate for an API server at ip, sent with the CA shown.
func (a authority) serving(t *testing.T, ip string, until time.Time, shown authority) tls.Certificate {
	t.Helper()
	key := newKey(t)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.ParseIP(ip)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	must.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der, shown.cert.Raw}, PrivateKey: key}
}

// testControlPlane answers as an API server does to a host that joins, over real TLS.
type testControlPlane struct {
	ca       authority
	token    Token
	clock    func() time.Time
	signed   string // what the cluster-info's signature covers; empty: what it says
	unsigned bool
	sealed   []byte               // what control planes share; nil once that has expired
	starting func() bool          // whether it has not read tokens and rights yet
	unaware  func() bool          // whether it does not know a new token yet
	asked    atomic.Int32         // requests that came through TLS
	silent   func(nth int32) bool // whether the nth request, from 1 on, gets no answer
	*httptest.Server
}

func newControlPlane(
	t *testing.T, chain func(authority) tls.Certificate, adjust func(*testControlPlane),
) *testControlPlane {
	t.Helper()
	m := &testControlPlane{
		ca: newAuthority(t), token: NewToken(time.Hour, Scope{Kind: ForWorker}, "test"), clock: time.Now,
	}
	if adjust != nil {
		adjust(m)
	}
	cert := m.ca.serving(t, "127.0.0.1", time.Now().Add(time.Hour), m.ca)
	if chain != nil {
		cert = chain(m.ca)
	}
	m.Server = httptest.NewUnstartedServer(m)
	m.Config.ErrorLog = nil
	m.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	m.StartTLS()
	t.Cleanup(m.Close)
	return m
}

func (m *testControlPlane) target() TargetCluster {
	return TargetCluster{
		Server: strings.TrimPrefix(m.URL, "https://"), Host: "worker-1", Kind: ForWorker, Token: m.token,
		CAHash: pki.Hash(m.ca.cert),
	}
}

func (m *testControlPlane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if nth := m.asked.Add(1); m.silent != nil && m.silent(nth) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of a connection only after the body
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // a return would send an answer without content
	}
	w.Header().Set("Date", m.clock().UTC().Format(http.TimeFormat))
	starts, sent := m.starting != nil && m.starting(), r.Header.Get("Authorization")
	switch {
	case sent == "" && starts:
		w.WriteHeader(http.StatusForbidden)
		return
	case sent == "" && r.URL.Path == "/readyz":
		return
	case sent != "Bearer "+m.token.Reveal() || starts || m.unaware != nil && m.unaware():
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	answer := map[string]any{
		"/api/v1/namespaces/kube-public/configmaps/cluster-info":         m.clusterInfo(),
		"/api/v1/namespaces/kube-system/configmaps/kube-bootstrap":       corev1.ConfigMap{Data: map[string]string{settingsKey: "podCIDR: 10.1.0.0/16\n", etcdCAKey: string(m.ca.pem())}},
		"/api/v1/namespaces/kube-system/secrets/kube-bootstrap-registry": corev1.Secret{Data: map[string][]byte{registryKey: []byte("way")}},
		"/version": map[string]string{"gitVersion": "v1.36.3"},
		"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes": discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}},
		"/apis/authentication.k8s.io/v1/selfsubjectreviews": authenticationv1.SelfSubjectReview{
			Status: authenticationv1.SelfSubjectReviewStatus{
				UserInfo: authenticationv1.UserInfo{Groups: m.token.groups()},
			},
		},
	}[r.URL.Path]
	if r.URL.Path == "/api/v1/namespaces/kube-system/secrets/"+shareName && m.sealed != nil {
		answer = corev1.Secret{Data: map[string][]byte{shareKey: m.sealed}}
	}
	if answer == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (m *testControlPlane) clusterInfo() corev1.ConfigMap {
	kubeconfig, _ := Publisher{Server: "https://10.0.0.1:6443"}.clusterInfo(m.ca.pem())
	covers := m.signed
	if covers == "" {
		covers = string(kubeconfig)
	}
	info := corev1.ConfigMap{Data: map[string]string{bootstrap.KubeConfigKey: string(kubeconfig)}}
	if !m.unsigned {
		info.Data[bootstrap.JWSSignatureKeyPrefix+m.token.ID], _ = jws.ComputeDetachedSignature(covers,
			m.token.ID, m.token.secret)
	}
	return info
}
